// A process cloned with CLONE_FS alone changes its parent's working folder and umask.
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int child(void *unused)
{
    umask(057);
    return chdir("inside");
}

int main(void)
{
    char folder[4096];
    char *stack = malloc(65536);
    alarm(60);
    umask(022);
    mkdir("inside", 0755);
    pid_t pid = clone(child, stack + 65536, CLONE_FS | SIGCHLD, 0);
    if (pid < 0)
        return printf("refused: %s\n", strerror(errno)), 1;
    waitpid(pid, 0, 0);
    printf("folder: %s, umask %03o\n", strrchr(getcwd(folder, sizeof folder), '/') + 1, umask(0));
}
