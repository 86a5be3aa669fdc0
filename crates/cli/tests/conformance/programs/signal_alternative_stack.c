// Handlers run on the alternative stack that the program gave, which reads back as given, for main and for a thread.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static __thread char *low;
static __thread int inside, on_stack;
enum { SIZE = 65536 };

static void handler(int number)
{
    char here;
    stack_t now;
    inside = &here >= low && &here < low + SIZE;
    sigaltstack(0, &now);
    on_stack = now.ss_flags == SS_ONSTACK;
}

static void *use(void *name)
{
    stack_t before, after;
    sigaltstack(0, &before);
    low = malloc(SIZE);
    stack_t mine = { .ss_sp = low, .ss_size = SIZE };
    sigaltstack(&mine, 0);
    raise(SIGUSR1);
    sigaltstack(0, &after);
    printf("%s: none before: %d, inside: %d, flagged: %d, reads back: %d\n", (char *)name,
           before.ss_flags == SS_DISABLE, inside, on_stack, after.ss_sp == low && after.ss_size == SIZE);
    return 0;
}

int main(void)
{
    pthread_t thread;
    struct sigaction act = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
    alarm(60);
    sigaction(SIGUSR1, &act, 0);
    use("main");
    pthread_create(&thread, 0, use, "thread");
    pthread_join(thread, 0);
}
