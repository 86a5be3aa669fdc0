// All clocks go forward only, agree with each other, and sleeping takes at least as long as asked.
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long nanoseconds(struct timespec time)
{
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

static long now(int clock)
{
    struct timespec time = { 0, 0 };
    clock_gettime(clock, &time);
    return nanoseconds(time);
}

int main(void)
{
    int clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME, CLOCK_REALTIME_COARSE,
                     CLOCK_MONOTONIC_COARSE, CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID };
    for (int i = 0; i < 8; i++) {
        struct timespec resolution, raw;
        int back = 0;
        long last = now(clocks[i]);
        for (int j = 0; j < 300; j++) {
            long next = now(clocks[i]);
            back += next < last;
            last = next;
        }
        syscall(SYS_clock_gettime, clocks[i], &raw);
        clock_getres(clocks[i], &resolution);
        printf("%d: back %d, before the raw call: %d, has a resolution: %d\n", clocks[i], back,
               nanoseconds(raw) + 20000000 >= last, nanoseconds(resolution) > 0);
    }
    long start = now(CLOCK_MONOTONIC), start_raw = now(CLOCK_MONOTONIC_RAW);
    nanosleep(&(struct timespec){ 0, 20000000 }, 0);
    long slept = now(CLOCK_MONOTONIC) - start, slept_raw = now(CLOCK_MONOTONIC_RAW) - start_raw;
    printf("slept long enough: %d %d\n", slept >= 20000000, slept_raw >= 19000000);
    struct timeval day;
    long before = now(CLOCK_REALTIME) / 1000;
    gettimeofday(&day, 0);
    long between = day.tv_sec * 1000000 + day.tv_usec, after = now(CLOCK_REALTIME) / 1000;
    printf("time of day between: %d, time(): %d\n", before <= between && between <= after, time(0) - day.tv_sec < 20);
}
