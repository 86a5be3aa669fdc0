// A process cloned with CLONE_PARENT is the sibling of the one that made it, whose parent waits for both.
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int sibling(void *unused)
{
    return 40;
}

int main(void)
{
    int status, sum = 0, children = 0;
    char *stack = malloc(65536);
    alarm(60);
    pid_t first = fork();
    if (!first) {
        pid_t pid = clone(sibling, stack + 65536, CLONE_PARENT | SIGCHLD, 0);
        if (pid < 0)
            printf("refused: %s\n", strerror(errno));
        else
            printf("waiting for it: %s\n", waitpid(pid, 0, 0) < 0 ? strerror(errno) : "done");
        fflush(stdout);
        _exit(2);
    }
    while (wait(&status) > 0) {
        children++;
        sum += WEXITSTATUS(status);
    }
    printf("children %d, codes together %d\n", children, sum);
}
