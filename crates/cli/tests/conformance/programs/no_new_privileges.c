// The promise to gain no privileges is off at the start, reads back, can't be taken back, and is kept by children and exec.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    alarm(60);
    printf("%s: %d\n", argc > 1 ? argv[1] : "at start", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
    if (argc > 1)
        return 0;
    printf("set: %d, ", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    printf("taken back: %s\n", prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) ? strerror(errno) : "done");
    fflush(stdout);
    if (fork() == 0) {
        printf("child: %d\n", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
        fflush(stdout);
        _exit(0);
    }
    wait(0);
    execl(argv[0], argv[0], "after exec", NULL);
}
