// Each thread has its own thread-local variables and values, whose destructors run at its end, in up to four rounds.
// flags: -fno-builtin
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static __thread int counter = 5;
static __thread char large[30000];
static pthread_key_t key, again;
static int ended, rounds;

static void end(void *value)
{
    __atomic_add_fetch(&ended, (long)value, __ATOMIC_RELAXED);
}

static void once_more(void *value)
{
    __atomic_add_fetch(&rounds, 1, __ATOMIC_RELAXED);
    pthread_setspecific(again, value);
}

static void *run(void *number)
{
    long bad = counter != 5 || large[29999] != 0 || pthread_getspecific(key) != NULL;
    errno = (long)number;
    counter += (long)number;
    large[29999] = (long)number;
    pthread_setspecific(key, number);
    pthread_setspecific(again, number);
    for (int i = 0; i < 50; i++)
        free(malloc(1000));
    return (void *)(bad + (counter != 5 + (long)number) + (large[29999] != (char)(long)number) + (errno != (long)number));
}

int main(void)
{
    pthread_t threads[10];
    long wrong = 0;
    alarm(60);
    pthread_key_create(&key, end);
    pthread_key_create(&again, once_more);
    for (long i = 0; i < 10; i++)
        pthread_create(&threads[i], 0, run, (void *)(i + 1));
    for (int i = 0; i < 10; i++) {
        void *one;
        pthread_join(threads[i], &one);
        wrong += (long)one;
    }
    printf("wrong %ld, main's own %d, sum of ended %d, rounds %d\n", wrong, counter, ended, rounds);
}
