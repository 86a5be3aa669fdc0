// After binding itself to one processor the program runs on that, its threads and children too, and can go back.
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int chosen;

static void *check(void *who)
{
    cpu_set_t set;
    unsigned cpu = 9999;
    int elsewhere = 0;
    sched_getaffinity(0, sizeof set, &set);
    for (int i = 0; i < 50; i++) {
        sched_yield();
        syscall(SYS_getcpu, &cpu, 0, 0);
        elsewhere += cpu != chosen;
        elsewhere += sched_getcpu() != chosen;
    }
    printf("%s: allowed %d, chosen allowed: %d, elsewhere %d times\n", (char *)who, CPU_COUNT(&set),
           CPU_ISSET(chosen, &set),
           elsewhere);
    fflush(stdout);
    return 0;
}

int main(void)
{
    cpu_set_t all, one;
    pthread_t thread;
    alarm(60);
    sched_getaffinity(0, sizeof all, &all);
    printf("allowed as online: %d\n", CPU_COUNT(&all) == sysconf(_SC_NPROCESSORS_ONLN));
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &all))
            chosen = i;
    CPU_ZERO(&one);
    CPU_SET(chosen, &one);
    printf("bound: %d\n", sched_setaffinity(0, sizeof one, &one));
    check("main");
    pthread_create(&thread, 0, check, "thread");
    pthread_join(thread, 0);
    if (fork() == 0) {
        check("child");
        _exit(0);
    }
    wait(0);
    printf("back: %d\n", sched_setaffinity(0, sizeof all, &all));
}
