// _exit in another thread ends all threads at once, also those that compute.
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static volatile int started;

static void *busy(void *unused)
{
    __atomic_add_fetch(&started, 1, __ATOMIC_SEQ_CST);
    for (volatile unsigned i = 0;; i++)
        ;
}

static void *ender(void *unused)
{
    while (started < 2)
        usleep(100);
    write(1, "all started\n", 12);
    _exit(33);
}

int main(void)
{
    pthread_t thread;
    alarm(60);
    pthread_create(&thread, 0, busy, 0);
    pthread_create(&thread, 0, busy, 0);
    pthread_create(&thread, 0, ender, 0);
    pause();
}
