// Eight threads allocate, grow, check and free at the same time, and hand blocks to each other; nothing is lost.
// flags: -fno-builtin
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 8, SLOTS = 64, ROUNDS = 1200 };
static unsigned char *shared[SLOTS];
static int wrong;

/* the block's first bytes: size, then a value that all further bytes have */
static unsigned char *make(unsigned size)
{
    unsigned char *block = size % 7 ? malloc(size) : calloc(1, size);
    memset(block, size % 251, size);
    memcpy(block, &size, 4);
    return block;
}

static void check(unsigned char *block)
{
    unsigned size;
    memcpy(&size, block, 4);
    for (unsigned i = 4; i < size; i += 1 + size / 20)
        if (block[i] != size % 251)
            __atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
}

static void *churn(void *number)
{
    unsigned random = (long)number * 7919 + 1;
    for (int i = 0; i < ROUNDS; i++) {
        random = random * 1664525 + 1013904223;
        unsigned char *mine = make(4 + (random >> 8) % (i % 40 ? 600 : 70000));
        if (i % 5 == 0)
            mine = realloc(mine, 70004);
        unsigned char *other = __atomic_exchange_n(&shared[random >> 26], mine, __ATOMIC_ACQ_REL);
        if (other) {
            check(other);
            free(other);
        }
    }
    return 0;
}

int main(void)
{
    pthread_t threads[THREADS];
    alarm(60);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], 0, churn, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], 0);
    for (int i = 0; i < SLOTS; i++)
        if (shared[i])
            check(shared[i]);
    printf("wrong %d\n", wrong);
}
