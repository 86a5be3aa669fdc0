// signalfd delivers blocked signals as records, in order, and none twice.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

int main(void)
{
    struct signalfd_siginfo records[8];
    sigset_t set;
    alarm(60);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    sigaddset(&set, SIGRTMIN + 1);
    sigprocmask(SIG_BLOCK, &set, 0);
    int file = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    struct pollfd poll_it = { .fd = file, .events = POLLIN };
    printf("ready before: %d\n", poll(&poll_it, 1, 0));
    for (int i = 0; i < 3; i++)
        sigqueue(getpid(), SIGRTMIN + 1, (union sigval){ .sival_int = 100 + i });
    raise(SIGUSR2);
    raise(SIGUSR1);
    raise(SIGUSR1);
    printf("ready after: %d\n", poll(&poll_it, 1, 0));
    ssize_t got = read(file, records, sizeof records);
    for (int i = 0; i < got / (ssize_t)sizeof *records; i++)
        printf("signal %u, code %d, value %d, sent by itself: %d\n", records[i].ssi_signo, records[i].ssi_code,
               records[i].ssi_code == SI_QUEUE ? records[i].ssi_int : 0, records[i].ssi_pid == getpid());
    got = read(file, records, sizeof records);
    printf("then %zd, %s\n", got, strerror(errno));
}
