// At each of fifty barriers all four threads meet, and one of them is told that it was the last.
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 50 };
static pthread_barrier_t barrier;
static int arrived[ROUNDS], serial, early;

static void *meet(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        __atomic_add_fetch(&arrived[i], 1, __ATOMIC_SEQ_CST);
        int result = pthread_barrier_wait(&barrier);
        if (result == PTHREAD_BARRIER_SERIAL_THREAD)
            __atomic_add_fetch(&serial, 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&arrived[i], __ATOMIC_SEQ_CST) != THREADS)
            __atomic_add_fetch(&early, 1, __ATOMIC_SEQ_CST);
    }
    return 0;
}

int main(void)
{
    pthread_t threads[THREADS];
    alarm(60);
    pthread_barrier_init(&barrier, 0, THREADS);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], 0, meet, 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], 0);
    printf("last ones %d, passed too early %d\n", serial, early);
}
