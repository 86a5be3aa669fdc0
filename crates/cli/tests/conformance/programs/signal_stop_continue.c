// A parent sees its child stop and go on, in this order, once each.
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(int status)
{
    if (WIFSTOPPED(status))
        printf("stopped by %d\n", WSTOPSIG(status));
    else if (WIFCONTINUED(status))
        printf("continued\n");
    else if (WIFEXITED(status))
        printf("exited with %d\n", WEXITSTATUS(status));
    else
        printf("killed by %d\n", WTERMSIG(status));
}

int main(void)
{
    int status, go[2];
    char c;
    alarm(20);
    pipe(go);
    pid_t child = fork();
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int i = 0; i < 3; i++) {
            raise(SIGSTOP);
            read(go[0], &c, 1);
        }
        _exit(6);
    }
    for (int i = 0; i < 3; i++) {
        waitpid(child, &status, WUNTRACED);
        say(status);
        kill(child, SIGCONT);
        waitpid(child, &status, WCONTINUED);
        say(status);
        write(go[1], "x", 1);
    }
    waitpid(child, &status, 0);
    say(status);
}
