// Computing time grows while computing and not while sleeping, and a child's is counted when it has ended.
#include <stdio.h>
#include <sys/resource.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long used(int who)
{
    struct rusage usage;
    getrusage(who, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000L + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

static long of_thread(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000L + time.tv_nsec / 1000;
}

static void compute(long microseconds)
{
    for (long end = of_thread() + microseconds; of_thread() < end;)
        ;
}

int main(void)
{
    alarm(60);
    long before = used(RUSAGE_SELF), thread_before = of_thread(), children = used(RUSAGE_CHILDREN);
    compute(15000);
    long after = used(RUSAGE_SELF);
    printf("grew: %d %d\n", after - before >= 10000, of_thread() - thread_before >= 15000);
    thread_before = of_thread();
    usleep(30000);
    printf("asleep: %d\n", of_thread() - thread_before < 25000);
    if (fork() == 0) {
        compute(15000);
        _exit(0);
    }
    wait(0);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("children before: %d, grew: %d, largest size known: %d\n", children == 0,
           used(RUSAGE_CHILDREN) - children >= 10000, usage.ru_maxrss > 0);
}
