// A process cloned with CLONE_VM and CLONE_VFORK on its own stack writes to its parent's memory, which waits for it.
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int value = 1, own_stack;
static char *stack;

static int child(void *added)
{
    char here;
    own_stack = &here > stack && &here < stack + 65536;
    value += *(int *)added;
    for (volatile int i = 0; i < 1000; i++)
        ;
    syscall(SYS_exit, 4);
    return 0;
}

int main(void)
{
    int status = 0, added = 41;
    alarm(60);
    stack = malloc(65536);
    pid_t pid = clone(child, stack + 65536, CLONE_VM | CLONE_VFORK | SIGCHLD, &added);
    if (pid < 0)
        return printf("refused: %s\n", strerror(errno)), 1;
    printf("value %d, on its own stack: %d", value, own_stack);
    waitpid(pid, &status, 0);
    printf(", ended with %d\n", WEXITSTATUS(status));
}
