// A program may forbid looking into it, which reads back, is kept over fork and not over exec.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    alarm(60);
    printf("%s: %d\n", argc > 1 ? argv[1] : "at start", prctl(PR_GET_DUMPABLE));
    if (argc > 1)
        return 0;
    printf("set: %d, ", prctl(PR_SET_DUMPABLE, 0));
    printf("reads back: %d, ", prctl(PR_GET_DUMPABLE));
    printf("2: %s\n", prctl(PR_SET_DUMPABLE, 2) ? strerror(errno) : "done");
    fflush(stdout);
    if (fork() == 0) {
        printf("child: %d\n", prctl(PR_GET_DUMPABLE));
        fflush(stdout);
        _exit(0);
    }
    wait(0);
    usleep(10000);
    execl(argv[0], argv[0], "after exec", NULL);
}
