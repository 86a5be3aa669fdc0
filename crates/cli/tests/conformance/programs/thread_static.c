// A static program uses threads, thread-local values, malloc and signals.
// flags: -static
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static __thread int own;
static int signals;

static void handler(int number)
{
    own += 1000;
    __atomic_add_fetch(&signals, 1, __ATOMIC_SEQ_CST);
}

static void *run(void *number)
{
    char *text = malloc(100);
    own = (long)number;
    raise(SIGUSR1);
    snprintf(text, 100, "%d", own);
    long value = atol(text);
    free(text);
    return (void *)value;
}

int main(void)
{
    pthread_t threads[8];
    long sum = 0;
    alarm(60);
    signal(SIGUSR1, handler);
    for (long i = 0; i < 8; i++)
        pthread_create(&threads[i], 0, run, (void *)i);
    for (int i = 0; i < 8; i++) {
        void *one;
        pthread_join(threads[i], &one);
        sum += (long)one;
    }
    printf("sum %ld, signals %d, main's own %d\n", sum, signals, own);
}
