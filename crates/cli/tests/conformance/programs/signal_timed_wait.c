// sigtimedwait takes pending signals by number and in the order sent, then runs into its time limit.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int main(void)
{
    sigset_t set;
    siginfo_t info;
    int got, number;
    alarm(60);
    sigemptyset(&set);
    for (int i = 0; i < 4; i++)
        sigaddset(&set, SIGRTMIN + i);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, 0);
    for (int i = 0; i < 12; i++)
        sigqueue(getpid(), SIGRTMIN + i * 3 % 4, (union sigval){ .sival_int = i });
    sigqueue(getpid(), SIGUSR1, (union sigval){ .sival_int = 50 });
    while ((got = sigtimedwait(&set, &info, &(struct timespec){ 0, 5000000 })) > 0)
        printf("signal %d, value %d\n", got >= SIGRTMIN ? got - SIGRTMIN : got, info.si_value.sival_int);
    printf("then %s\n", strerror(errno));
    raise(SIGUSR1);
    got = sigwait(&set, &number);
    printf("sigwait: %d, %d\n", got, number);
}
