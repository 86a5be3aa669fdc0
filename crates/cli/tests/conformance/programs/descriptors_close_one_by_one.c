// Closing the numbers 3 to 1023 one by one, as old daemons do, finds none open but the program's own, and harms nothing.
// flags: -fno-builtin
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
    int inherited = 0, other = 0, mine = open("/dev/null", O_RDONLY), high = fcntl(1, F_DUPFD, 500);
    for (int i = 3; i < 1024; i++) {
        if (close(i) == 0)
            inherited += i != mine && i != high;
        else
            other += errno != EBADF;
    }
    printf("closed others' %d, other errors %d, mine still open: %d\n", inherited ? 1 : 0, other,
           fcntl(mine, F_GETFD) >= 0);
    FILE *file = fopen("after", "w");
    fprintf(file, "number %d\n", fileno(file));
    fclose(file);
    for (int i = 0; i < 50; i++)
        free(malloc(i * 1000));
}
