// Signals reach the thread that they are sent to, and those to the process a thread that does not block them.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile int got[4];
static volatile int ready, finish;
static __thread int number_of_thread;

static void handler(int number)
{
    __atomic_add_fetch(&got[number_of_thread], number == SIGUSR1 ? 1 : 100, __ATOMIC_SEQ_CST);
}

static void *waiter(void *number)
{
    sigset_t set;
    number_of_thread = (long)number;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    if (number_of_thread == 2)
        pthread_sigmask(SIG_UNBLOCK, &set, 0);
    __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
    while (!finish)
        usleep(500);
    return 0;
}

int main(void)
{
    pthread_t threads[4];
    sigset_t set;
    alarm(60);
    signal(SIGUSR1, handler);
    signal(SIGUSR2, handler);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, 0);
    for (long i = 1; i < 4; i++)
        pthread_create(&threads[i], 0, waiter, (void *)i);
    while (ready < 3)
        usleep(500);
    for (int i = 1; i < 4; i++)
        for (int times = 0; times < i; times++) {
            int before = got[i];
            pthread_kill(threads[i], SIGUSR1);
            while (got[i] == before)
                usleep(200);
        }
    kill(getpid(), SIGUSR2);
    while (got[2] < 100)
        usleep(200);
    finish = 1;
    for (int i = 1; i < 4; i++)
        pthread_join(threads[i], 0);
    printf("main %d, one %d, two %d, three %d\n", got[0], got[1], got[2], got[3]);
}
