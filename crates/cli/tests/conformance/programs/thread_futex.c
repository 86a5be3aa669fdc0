// The raw futex calls: a value that differs, a time limit, waking a counted number, and moving waiters to another word.
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int word, second, woken;

static void *waiter(void *unused)
{
    while (syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0) < 0 && errno == EINTR)
        ;
    __atomic_add_fetch(&woken, 1, __ATOMIC_SEQ_CST);
    return 0;
}

int main(void)
{
    struct timespec limit = { 0, 10000000 }, before, after;
    pthread_t threads[5];
    alarm(60);
    long result = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, 0, 0, 0);
    printf("another value: %ld, %s\n", result, strerror(errno));
    clock_gettime(CLOCK_MONOTONIC, &before);
    result = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &limit, 0, 0);
    int error = errno;
    clock_gettime(CLOCK_MONOTONIC, &after);
    long waited = (after.tv_sec - before.tv_sec) * 1000000000L + after.tv_nsec - before.tv_nsec;
    printf("time limit: %ld, %s, waited long enough: %d\n", result, strerror(error), waited >= 10000000);
    for (int i = 0; i < 5; i++)
        pthread_create(&threads[i], 0, waiter, 0);
    int moved = 0, count = 0;
    while (count < 2)
        count += syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
    while (moved < 3)
        moved += syscall(SYS_futex, &word, FUTEX_REQUEUE_PRIVATE, 0, 3L, &second, 0);
    usleep(10000);
    printf("woken %d, moved %d, still waiting: %d\n", count, moved, 5 - woken);
    printf("woken at the second: %ld\n", syscall(SYS_futex, &second, FUTEX_WAKE_PRIVATE, 10, 0, 0, 0));
    for (int i = 0; i < 5; i++)
        pthread_join(threads[i], 0);
}
