// A real fault kills even while SIGSEGV is ignored or blocked.
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int child_that_faults(int blocks)
{
    int status = 0;
    pid_t child = fork();
    if (!child) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGSEGV);
        if (blocks)
            sigprocmask(SIG_BLOCK, &set, 0);
        else
            signal(SIGSEGV, SIG_IGN);
        *(volatile int *)24 = 1;
        _exit(0);
    }
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

int main(void)
{
    alarm(60);
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    printf("ignored: killed by %d\n", child_that_faults(0));
    printf("blocked: killed by %d\n", child_that_faults(1));
}
