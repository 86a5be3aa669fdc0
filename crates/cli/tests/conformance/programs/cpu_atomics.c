// Locked instructions are whole: added by four threads, over a cache line's edge, and exchanged in 16 bytes.
// flags: -mcx16
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 2000 };
static char memory[256] __attribute__((aligned(64)));
static volatile unsigned long *across = (void *)(memory + 60);
static volatile unsigned plain;
static unsigned __int128 wide __attribute__((aligned(16)));

static void *add(void *number)
{
    for (int i = 0; i < ROUNDS; i++) {
        __asm__ volatile("lock addl $1, %0" : "+m"(plain)::"cc");
        if (i % 20 == 0)
            __asm__ volatile("lock addq $3, %0" : "+m"(*across)::"cc");
        uint64_t low = wide, high = wide >> 64, done;
        do
            __asm__ volatile("movq %%rax, %%rbx\n movq %%rdx, %%rcx\n addq $1, %%rbx\n adcq $2, %%rcx\n"
                             "lock cmpxchg16b %1\n setz %b0"
                             : "=&r"(done), "+m"(wide), "+a"(low), "+d"(high)::"rbx", "rcx", "cc");
        while (!(done & 1));
    }
    return 0;
}

int main(void)
{
    pthread_t threads[THREADS];
    unsigned long value = 10;
    alarm(60);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], 0, add, 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], 0);
    printf("plain %u, across %lu, wide %lu %lu\n", plain, *across, (uint64_t)(wide >> 64), (uint64_t)wide);
    __asm__("lock xaddq %0, %1" : "+r"(value), "+m"(*across)::"cc");
    printf("exchanged %lu, sum %lu\n", value, *across);
}
