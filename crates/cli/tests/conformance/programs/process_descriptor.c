// A pidfd becomes readable at the child's end, sends signals and is waited for.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    siginfo_t info = { 0 };
    alarm(60);
    signal(SIGTERM, SIG_DFL);
    pid_t child = fork();
    if (!child) {
        alarm(60);
        for (;;)
            pause();
    }
    int file = syscall(SYS_pidfd_open, child, 0);
    if (file < 0) {
        printf("pidfd_open: %s\n", strerror(errno));
        kill(child, SIGKILL);
        wait(0);
        return 1;
    }
    struct pollfd poll_it = { .fd = file, .events = POLLIN };
    printf("ended before: %d\n", poll(&poll_it, 1, 0));
    if (syscall(SYS_pidfd_send_signal, file, SIGTERM, 0, 0) < 0) {
        printf("pidfd_send_signal: %s\n", strerror(errno));
        kill(child, SIGTERM);
    }
    printf("ended after: %d\n", poll(&poll_it, 1, 20000));
    if (waitid(P_PIDFD, file, &info, WEXITED) < 0) {
        printf("waitid: %s\n", strerror(errno));
        wait(0);
    }
    printf("code %d, status %d\n", info.si_code, info.si_status);
}
