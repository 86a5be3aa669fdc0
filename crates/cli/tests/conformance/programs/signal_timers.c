// Timers deliver their signals (real, virtual and profiling time; to a chosen thread; by a thread) and tell their values.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t real, virtual, profile, mine, value, others;
static volatile int notified;

static void on_signal(int number, siginfo_t *info, void *context)
{
    if (number == SIGALRM)
        real++;
    if (number == SIGVTALRM)
        virtual++;
    if (number == SIGPROF)
        profile++;
    if (number == SIGUSR1) {
        mine += info->si_code == SI_TIMER;
        value = info->si_value.sival_int;
        others += syscall(SYS_gettid) != getpid();
    }
}

static void by_thread(union sigval value)
{
    __atomic_add_fetch(&notified, value.sival_int, __ATOMIC_SEQ_CST);
}

int main(void)
{
    struct itimerval often = { { 0, 2000 }, { 0, 2000 } }, off = { { 0, 0 }, { 0, 0 } };
    struct itimerspec every = { { 0, 2000000 }, { 0, 2000000 } };
    struct sigaction act = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART };
    struct sigevent to_me = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1, .sigev_value.sival_int = 4242 };
    struct sigevent thread = { .sigev_notify = SIGEV_THREAD, .sigev_notify_function = by_thread,
                               .sigev_value.sival_int = 7 };
    timer_t first, second;
    int signals[] = { SIGALRM, SIGVTALRM, SIGPROF, SIGUSR1 };
    for (int i = 0; i < 4; i++)
        sigaction(signals[i], &act, 0);
    to_me._sigev_un._tid = getpid();
    timer_create(CLOCK_MONOTONIC, &to_me, &first);
    timer_create(CLOCK_MONOTONIC, &thread, &second);
    timer_settime(first, 0, &every, 0);
    timer_settime(second, 0, &every, 0);
    setitimer(ITIMER_REAL, &often, 0);
    setitimer(ITIMER_VIRTUAL, &often, 0);
    setitimer(ITIMER_PROF, &often, 0);
    time_t limit = time(0) + 30;
    while ((real < 3 || virtual < 3 || profile < 3 || mine < 3 || notified < 21) && time(0) < limit)
        ;
    setitimer(ITIMER_REAL, &off, 0);
    setitimer(ITIMER_VIRTUAL, &off, 0);
    setitimer(ITIMER_PROF, &off, 0);
    timer_delete(first);
    timer_delete(second);
    printf("real %d, virtual %d, profile %d, ", real >= 3, virtual >= 3, profile >= 3);
    printf("to the thread %d with %d, to others %d, by a thread %d\n", mine >= 3, value, others, notified % 7 == 0);
}
