// A program may be run from an open descriptor, with and without close-on-exec.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int status = 0;
    alarm(60);
    if (argc > 1) {
        int file = atoi(argv[1]);
        printf("run from a descriptor, which is still open: %d\n", fcntl(file, F_GETFD) >= 0);
        return 8;
    }
    for (int flags = 0; flags <= O_CLOEXEC; flags += O_CLOEXEC) {
        if (fork() == 0) {
            int file = open(argv[0], O_RDONLY | flags);
            dup3(file, 30, flags);
            fexecve(30, (char *[]){ argv[0], "30", NULL }, environ);
            printf("%s\n", strerror(errno));
            fflush(stdout);
            _exit(1);
        }
        wait(&status);
        printf("ended with %d\n", WEXITSTATUS(status));
        fflush(stdout);
    }
}
