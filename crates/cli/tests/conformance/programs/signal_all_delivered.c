// Five hundred queued signals of a child all arrive, in order, while the parent computes and sleeps.
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t came, wrong;

static void handler(int number, siginfo_t *info, void *context)
{
    wrong += info->si_value.sival_int != came;
    came++;
}

int main(void)
{
    int status = 0, rounds = 0;
    alarm(60);
    sigaction(SIGRTMIN + 3, &(struct sigaction){ .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART }, 0);
    pid_t child = fork();
    if (!child) {
        for (int i = 0; i < 500; i++)
            while (sigqueue(getppid(), SIGRTMIN + 3, (union sigval){ .sival_int = i }))
                usleep(100);
        _exit(5);
    }
    for (time_t limit = time(0) + 30; came < 500 && time(0) < limit; rounds++)
        if (rounds % 50 == 0)
            nanosleep(&(struct timespec){ 0, 100000 }, 0);
    waitpid(child, &status, 0);
    printf("came %d, out of order %d, child ended with %d\n", came, wrong, WEXITSTATUS(status));
}
