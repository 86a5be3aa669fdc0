// Prints whether 0, 1 and 2 are terminals, what kinds of files they are, how they are open, and how output is buffered.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int main(void)
{
    for (int i = 0; i < 3; i++) {
        struct stat state;
        fstat(i, &state);
        errno = 0;
        int is = isatty(i);
        printf("%d: terminal %d, %s, kind %o, flags %o, close-on-exec %d\n", i, is, strerror(errno), state.st_mode & S_IFMT,
               fcntl(i, F_GETFL), fcntl(i, F_GETFD));
    }
    printf("line buffered: %d %d\n", __flbf(stdout) != 0, __flbf(stderr) != 0);
    printf("output has a position: %d\n", lseek(1, 0, SEEK_CUR) >= 0);
    int terminal = open("/dev/tty", O_RDWR);
    printf("controlling terminal: %s\n", terminal < 0 ? strerror(errno) : "there");
}
