// Two hundred short threads each add their number and are joined.
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static long sum;

static void *add(void *number)
{
    __atomic_add_fetch(&sum, (long)number, __ATOMIC_RELAXED);
    return number;
}

int main(void)
{
    int wrong = 0;
    alarm(60);
    for (long i = 0; i < 200; i += 10) {
        pthread_t threads[10];
        for (long j = 0; j < 10; j++)
            wrong += pthread_create(&threads[j], 0, add, (void *)(i + j)) != 0;
        for (long j = 0; j < 10; j++) {
            void *result;
            pthread_join(threads[j], &result);
            wrong += (long)result != i + j;
        }
    }
    printf("sum %ld, wrong %d\n", sum, wrong);
}
