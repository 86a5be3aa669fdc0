// sigsuspend waits with another mask and gives the old one back.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t came;

static void handler(int number)
{
    came = came * 100 + number;
}

int main(void)
{
    sigset_t block, wait_for, now;
    alarm(60);
    signal(SIGUSR1, handler);
    signal(SIGUSR2, handler);
    sigemptyset(&block);
    sigaddset(&block, SIGUSR1);
    sigaddset(&block, SIGUSR2);
    sigprocmask(SIG_BLOCK, &block, 0);
    raise(SIGUSR1);
    raise(SIGUSR2);
    sigfillset(&wait_for);
    sigdelset(&wait_for, SIGUSR2);
    int result = sigsuspend(&wait_for);
    printf("%d, %s, came %d\n", result, strerror(errno), came);
    sigprocmask(SIG_BLOCK, 0, &now);
    printf("blocked again: %d %d\n", sigismember(&now, SIGUSR1), sigismember(&now, SIGUSR2));
    sigprocmask(SIG_UNBLOCK, &block, 0);
    printf("came %d\n", came);
}
