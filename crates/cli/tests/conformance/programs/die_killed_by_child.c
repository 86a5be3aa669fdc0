// A process that its child kills is dead by that signal, and the child goes to the one that adopts orphans.
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    int status = 0;
    alarm(60);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t middle = fork();
    if (!middle) {
        alarm(60);
        if (fork() == 0) {
            kill(getppid(), SIGKILL);
            _exit(3);
        }
        for (;;)
            pause();
    }
    waitpid(middle, &status, 0);
    printf("killed by %d, ", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    wait(&status);
    printf("its child ended with %d\n", WEXITSTATUS(status));
}
