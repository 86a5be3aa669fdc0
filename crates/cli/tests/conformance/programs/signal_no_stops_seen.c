// A parent that waits for stops of a computing child sees none, only its end.
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t children;

static void on_child(int number, siginfo_t *info, void *context)
{
    children++;
}

static long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

int main(void)
{
    int status, stops = 0, continues = 0;
    struct sigaction act = { .sa_sigaction = on_child, .sa_flags = SA_SIGINFO | SA_RESTART };
    alarm(60);
    sigaction(SIGCHLD, &act, 0);
    pid_t child = fork();
    if (!child) {
        for (long end = now() + 100; now() < end;)
            ;
        _exit(3);
    }
    for (;;) {
        waitpid(child, &status, WUNTRACED | WCONTINUED);
        if (WIFSTOPPED(status))
            stops++;
        else if (WIFCONTINUED(status))
            continues++;
        else
            break;
    }
    printf("stops %d, continues %d, SIGCHLD %d, code %d\n", stops, continues, children, WEXITSTATUS(status));
}
