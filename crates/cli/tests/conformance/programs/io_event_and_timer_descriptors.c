// Event descriptors count and act as semaphores between threads; timer descriptors count what has run out.
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

static int events;

static void *adder(void *unused)
{
    for (int i = 0; i < 100; i++)
        eventfd_write(events, 3);
    return 0;
}

int main(void)
{
    pthread_t threads[3];
    uint64_t value = 0, sum = 0;
    alarm(60);
    events = eventfd(0, EFD_CLOEXEC);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], 0, adder, 0);
    while (sum < 900) {
        eventfd_read(events, &value);
        sum += value;
    }
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], 0);
    int semaphore = eventfd(2, EFD_SEMAPHORE | EFD_NONBLOCK), taken = 0;
    while (read(semaphore, &value, 8) == 8)
        taken += value;
    printf("sum %lu, taken %d, then %s\n", sum, taken, strerror(errno));
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    timerfd_settime(timer, 0, &(struct itimerspec){ { 0, 1000000 }, { 0, 1000000 } }, 0);
    for (sum = 0; sum < 10; sum += value)
        read(timer, &value, 8);
    usleep(10000);
    read(timer, &value, 8);
    printf("at least ten: %d, then at least nine at once: %d\n", sum >= 10, value >= 9);
}
