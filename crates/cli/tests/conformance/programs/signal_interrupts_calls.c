// A signal interrupts sleeping calls with EINTR; with SA_RESTART a read goes on and a nanosleep does not.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t came;
static int ends[2];

static void handler(int number)
{
    if (++came == 2)
        write(ends[1], "woken", 5);
}

static void arm(int flags)
{
    struct itimerval soon = { .it_value.tv_usec = 5000, .it_interval.tv_usec = flags ? 5000 : 0 };
    came = 0;
    sigaction(SIGALRM, &(struct sigaction){ .sa_handler = handler, .sa_flags = flags }, 0);
    setitimer(ITIMER_REAL, &soon, 0);
}

static void say(const char *what, long result)
{
    printf("%s: %ld, %s\n", what, result, result < 0 ? strerror(errno) : "done");
}

int main(void)
{
    char text[8];
    struct timespec left = { 0, 0 }, limit = { 20, 0 };
    pipe(ends);
    arm(0);
    say("read", read(ends[0], text, 5));
    arm(0);
    say("nanosleep", nanosleep(&limit, &left));
    printf("left over: %s\n", left.tv_sec >= 10 && left.tv_sec < 20 ? "yes" : "no");
    arm(0);
    say("poll", poll(0, 0, 20000));
    arm(0);
    say("pause", pause());
    arm(0);
    printf("clock_nanosleep: %s\n", strerror(clock_nanosleep(CLOCK_MONOTONIC, 0, &limit, &left)));
    arm(SA_RESTART);
    say("read that restarts", read(ends[0], text, 5));
    arm(SA_RESTART);
    say("nanosleep that does not", nanosleep(&limit, 0));
}
