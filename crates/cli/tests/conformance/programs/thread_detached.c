// Detached threads run to their end; joining itself is refused, and joins may be tried or limited in time.
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int done;
static volatile int finish;

static void *run(void *waits)
{
    while (waits && !finish)
        usleep(500);
    __atomic_add_fetch(&done, 1, __ATOMIC_SEQ_CST);
    return (void *)42;
}

int main(void)
{
    pthread_t thread;
    pthread_attr_t attributes;
    struct timespec soon;
    void *result = 0;
    alarm(60);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    for (int i = 0; i < 20; i++)
        pthread_create(&thread, &attributes, run, 0);
    while (__atomic_load_n(&done, __ATOMIC_SEQ_CST) < 20)
        usleep(500);
    printf("detached %d, itself: %s\n", done, strerror(pthread_join(pthread_self(), 0)));
    pthread_create(&thread, 0, run, (void *)1);
    printf("not ended: %s, ", strerror(pthread_tryjoin_np(thread, 0)));
    clock_gettime(CLOCK_REALTIME, &soon);
    printf("time limit: %s, ", strerror(pthread_timedjoin_np(thread, 0, &soon)));
    finish = 1;
    printf("joined: %s, ", strerror(pthread_join(thread, &result)));
    printf("result %ld\n", (long)result);
}
