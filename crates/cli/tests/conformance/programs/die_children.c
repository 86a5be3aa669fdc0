// Each signal does to a child what it does by default: kills, stops, or nothing.
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    int signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGKILL, SIGUSR1, SIGSEGV,
                      SIGUSR2, SIGPIPE, SIGALRM, SIGTERM, SIGSTKFLT, SIGCHLD, SIGCONT, SIGURG, SIGXCPU, SIGXFSZ,
                      SIGVTALRM, SIGPROF, SIGWINCH, SIGIO, SIGPWR, SIGSYS };
    alarm(60);
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    for (int i = 0; i < sizeof signals / sizeof *signals; i++) {
        int status = 0;
        pid_t child = fork();
        if (!child) {
            signal(signals[i], SIG_DFL);
            kill(getpid(), signals[i]);
            _exit(0);
        }
        waitpid(child, &status, 0);
        if (WIFSIGNALED(status))
            printf("%d kills as %d\n", signals[i], WTERMSIG(status));
        else
            printf("%d leaves it alone: %d\n", signals[i], WEXITSTATUS(status));
    }
}
