// SIGCHLD tells how the child ended; while it is ignored, children vanish and waiting fails.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    sigset_t set;
    siginfo_t info;
    alarm(60);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, 0);
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        if (!child) {
            if (i == 0)
                _exit(17);
            raise(i == 1 ? SIGKILL : SIGSTOP);
            _exit(18);
        }
        sigwaitinfo(&set, &info);
        printf("code %d, status %d, child right: %d, user right: %d\n", info.si_code, info.si_status,
               info.si_pid == child, info.si_uid == getuid());
        if (i == 2) {
            kill(child, SIGCONT);
            sigwaitinfo(&set, &info);
            printf("code %d, status %d\n", info.si_code, info.si_status);
        }
        waitpid(child, 0, 0);
        sigtimedwait(&set, &info, &(struct timespec){ 0, 0 });
    }
    signal(SIGCHLD, SIG_IGN);
    for (int i = 0; i < 3; i++)
        if (fork() == 0)
            _exit(1);
    int result = wait(0);
    printf("ignored: %d, %s\n", result, strerror(errno));
}
