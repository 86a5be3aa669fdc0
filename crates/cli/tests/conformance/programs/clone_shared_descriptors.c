// A process cloned with CLONE_FILES alone shares descriptors but no memory.
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int value = 1;

static int child(void *unused)
{
    value = 2;
    close(20);
    dup2(1, 21);
    return 8;
}

int main(void)
{
    int status = 0;
    char *stack = malloc(65536);
    alarm(60);
    dup2(1, 20);
    pid_t pid = clone(child, stack + 65536, CLONE_FILES | SIGCHLD, 0);
    if (pid < 0)
        return printf("refused: %s\n", strerror(errno)), 1;
    waitpid(pid, &status, 0);
    printf("ended with %d, 20 open: %d, 21 open: %d, value %d\n", WEXITSTATUS(status), fcntl(20, F_GETFD) >= 0,
           fcntl(21, F_GETFD) >= 0, value);
}
