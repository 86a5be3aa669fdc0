// A child made with another signal for its end sends that, and is waited for with __WCLONE.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t chld, usr1;

static void handler(int number)
{
    if (number == SIGCHLD)
        chld++;
    else
        usr1++;
}

int main(void)
{
    int status = 0;
    alarm(60);
    signal(SIGCHLD, handler);
    signal(SIGUSR1, handler);
    pid_t pid = syscall(SYS_clone, SIGUSR1, 0, 0, 0, 0);
    if (!pid)
        _exit(12);
    if (pid < 0)
        return printf("refused: %s\n", strerror(errno)), 1;
    while (!usr1 && !chld)
        usleep(1000);
    printf("without flag: %s\n", waitpid(pid, &status, 0) < 0 ? strerror(errno) : "found");
    pid_t got = waitpid(pid, &status, __WCLONE);
    printf("with flag: %d, code %d; SIGCHLD %d, SIGUSR1 %d\n", got == pid, WEXITSTATUS(status), chld, usr1);
}
