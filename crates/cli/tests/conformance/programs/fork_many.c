// Many short children in a row and several at once all end with their own code, and none is left.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    int status = 0, sum = 0, ended = 0;
    alarm(60);
    for (int i = 0; i < 24; i++) {
        if (fork() == 0)
            _exit(i);
        wait(&status);
        sum += WEXITSTATUS(status);
    }
    printf("in a row: %d\n", sum);
    fflush(stdout);
    sum = 0;
    for (int i = 0; i < 24; i++)
        if (fork() == 0)
            _exit(i * 2);
    while (wait(&status) > 0) {
        sum += WEXITSTATUS(status);
        ended++;
    }
    printf("at once: %d of %d, then %s\n", sum, ended, strerror(errno));
}
