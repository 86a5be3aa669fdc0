// At the start no timer runs, and timers are not kept over fork but over exec.
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char *who)
{
    for (int which = ITIMER_REAL; which <= ITIMER_PROF; which++) {
        struct itimerval now;
        getitimer(which, &now);
        printf("%s, timer %d: runs %d, repeats %d\n", who, which, now.it_value.tv_sec || now.it_value.tv_usec,
               now.it_interval.tv_sec || now.it_interval.tv_usec);
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct itimerval long_one = { { 500, 0 }, { 400, 0 } };
    if (argc > 1) {
        say(argv[1]);
        return 0;
    }
    say("at start");
    setitimer(ITIMER_REAL, &long_one, 0);
    setitimer(ITIMER_PROF, &long_one, 0);
    if (fork() == 0) {
        say("child");
        _exit(0);
    }
    wait(0);
    execl(argv[0], argv[0], "after exec", NULL);
}
