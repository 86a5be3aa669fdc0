// exit in another thread ends the process while the main thread waits, and runs the handlers in that thread.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_t thread;

static void bye(void)
{
    printf("handler in the thread that called exit: %s\n", pthread_equal(pthread_self(), thread) ? "yes" : "no");
}

static void *other(void *unused)
{
    exit(9);
}

int main(void)
{
    alarm(60);
    atexit(bye);
    pthread_create(&thread, 0, other, 0);
    for (;;)
        pause();
}
