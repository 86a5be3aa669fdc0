// Reaching the limit of computing time raises SIGXCPU, and at the hard limit the program is killed.
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t came;

static void handler(int number)
{
    came++;
}

int main(void)
{
    int status = 0;
    alarm(60);
    signal(SIGXCPU, handler);
    pid_t child = fork();
    if (!child) {
        alarm(60);
        signal(SIGXCPU, SIG_DFL);
        setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
        setrlimit(RLIMIT_CPU, &(struct rlimit){ 0, 100 });
        for (;;)
            ;
    }
    waitpid(child, &status, 0);
    printf("default: killed by SIGXCPU: %d\n", WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU);
    fflush(stdout);
    setrlimit(RLIMIT_CPU, &(struct rlimit){ 0, 100 });
    while (!came)
        ;
    printf("caught %d\n", came);
    setrlimit(RLIMIT_CPU, &(struct rlimit){ 100, 100 });
}
