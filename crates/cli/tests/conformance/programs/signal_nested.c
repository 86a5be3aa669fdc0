// Handlers nest as their masks say: a blocked signal waits for the handler's end, SA_NODEFER and SA_RESETHAND work.
#include <signal.h>
#include <stdio.h>
#include <string.h>

static char order[64];
static int depth;

static void note(char c)
{
    order[strlen(order)] = c;
}

static void outer(int number)
{
    note('A');
    raise(SIGUSR2);
    raise(SIGHUP);
    note('a');
}

static void free_one(int number) { note('B'); note('b'); }
static void blocked_one(int number) { note('C'); note('c'); }

static void again(int number)
{
    note('0' + depth);
    if (depth++ < 3)
        raise(number);
    note('.');
}

int main(void)
{
    struct sigaction act = { .sa_handler = outer }, now;
    sigemptyset(&act.sa_mask);
    sigaddset(&act.sa_mask, SIGHUP);
    sigaction(SIGUSR1, &act, 0);
    signal(SIGUSR2, free_one);
    signal(SIGHUP, blocked_one);
    raise(SIGUSR1);
    printf("one in the other: %s\n", order);
    memset(order, 0, sizeof order);
    sigaction(SIGTERM, &(struct sigaction){ .sa_handler = again, .sa_flags = SA_NODEFER }, 0);
    raise(SIGTERM);
    printf("itself in itself: %s\n", order);
    sigaction(SIGINT, &(struct sigaction){ .sa_handler = free_one, .sa_flags = SA_RESETHAND }, 0);
    raise(SIGINT);
    sigaction(SIGINT, 0, &now);
    printf("reset after one: %d\n", now.sa_handler == SIG_DFL);
}
