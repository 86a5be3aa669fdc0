// A handler runs on the usual stack again after the alternative one is turned off, which reads back so.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIZE = 65536 };
static char *low;
static volatile sig_atomic_t inside;

static void handler(int number)
{
    char here;
    inside = &here >= low && &here < low + SIZE;
}

int main(void)
{
    stack_t off = { .ss_flags = SS_DISABLE }, on = { .ss_sp = low = malloc(SIZE), .ss_size = SIZE }, now;
    sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = handler, .sa_flags = SA_ONSTACK }, 0);
    for (int i = 0; i < 4; i++) {
        sigaltstack(i % 2 ? &off : &on, 0);
        raise(SIGUSR1);
        sigaltstack(0, &now);
        printf("%s: inside %d, off %d\n", i % 2 ? "off" : "on", inside, now.ss_flags == SS_DISABLE);
    }
}
