// Blocks allocated in one thread are freed in another, also after the first has ended.
// flags: -fno-builtin
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 1500 };
static int *ring[64];
static volatile int put, taken;
static int *left[200];

static void *producer(void *unused)
{
    for (int i = 0; i < COUNT; i++) {
        int *block = malloc(sizeof(int) * (1 + i % 700));
        block[0] = block[i % 700] = i;
        while (__atomic_load_n(&put, __ATOMIC_ACQUIRE) - __atomic_load_n(&taken, __ATOMIC_ACQUIRE) == 64)
            sched_yield();
        ring[put % 64] = block;
        __atomic_store_n(&put, put + 1, __ATOMIC_RELEASE);
    }
    for (int i = 0; i < 200; i++) {
        left[i] = malloc(100 + i * 10);
        *left[i] = i;
    }
    return 0;
}

int main(void)
{
    pthread_t thread;
    int wrong = 0;
    alarm(60);
    pthread_create(&thread, 0, producer, 0);
    for (int i = 0; i < COUNT; i++) {
        while (__atomic_load_n(&put, __ATOMIC_ACQUIRE) == taken)
            sched_yield();
        int *block = ring[taken % 64];
        wrong += block[0] != i || block[i % 700] != i;
        free(block);
        __atomic_store_n(&taken, taken + 1, __ATOMIC_RELEASE);
    }
    pthread_join(thread, 0);
    for (int i = 0; i < 200; i++) {
        wrong += *left[i] != i;
        left[i] = realloc(left[i], 5000);
        wrong += *left[i] != i;
        free(left[i]);
    }
    printf("wrong %d\n", wrong);
}
