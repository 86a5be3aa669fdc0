// Blocked and ignored signals survive fork and exec, pending ones exec, and handled ones go back to the default there.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void handler(int number)
{
}

static void say(const char *who)
{
    sigset_t set, pending;
    struct sigaction act;
    printf("%s:", who);
    sigprocmask(SIG_BLOCK, 0, &set);
    sigpending(&pending);
    for (int i = 1; i < 64; i++) {
        if (sigismember(&set, i) == 1)
            printf(" blocked %d", i);
        if (sigismember(&pending, i) == 1)
            printf(" pending %d", i);
        if (i != SIGALRM && sigaction(i, 0, &act) == 0 && act.sa_handler != SIG_DFL)
            printf(act.sa_handler == SIG_IGN ? " ignored %d" : " handled %d", i);
    }
    printf("\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    sigset_t set;
    alarm(60);
    if (argc > 1) {
        say(argv[1]);
        return 0;
    }
    say("at start");
    sigemptyset(&set);
    for (const int *s = (int[]){ SIGUSR1, SIGTERM, SIGSEGV, SIGPROF, SIGRTMIN, SIGRTMIN + 7, SIGRTMAX - 2, 0 }; *s; s++)
        sigaddset(&set, *s);
    sigprocmask(SIG_BLOCK, &set, 0);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGUSR2, handler);
    if (fork() == 0) {
        raise(SIGTERM);
        say("after fork");
        execl(argv[0], argv[0], "after fork and exec", NULL);
    }
    wait(0);
    raise(SIGUSR1);
    say("parent");
    execl(argv[0], argv[0], "after exec", NULL);
}
