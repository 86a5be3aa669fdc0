// Cancelled threads run their cleanup handlers in order, at cancellation points only or at once, as they chose.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char order[64];
static volatile int ready;

static void note(void *text)
{
    strcat(order, text);
}

static void *at_point(void *unused)
{
    char c;
    int ends[2];
    pipe(ends);
    pthread_cleanup_push(note, "outer ");
    pthread_cleanup_push(note, "inner ");
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, 0);
    ready = 1;
    usleep(20000);
    note("not yet ");
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, 0);
    read(ends[0], &c, 1);
    note("never ");
    pthread_cleanup_pop(0);
    pthread_cleanup_pop(0);
    return 0;
}

static void *at_once(void *unused)
{
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0);
    ready = 1;
    for (;;)
        ;
}

int main(void)
{
    pthread_t thread;
    void *result = 0;
    alarm(60);
    for (int i = 0; i < 2; i++) {
        ready = 0;
        pthread_create(&thread, 0, i ? at_once : at_point, 0);
        while (!ready)
            usleep(500);
        pthread_cancel(thread);
        pthread_join(thread, &result);
        printf("cancelled: %d, %s\n", result == PTHREAD_CANCELED, order);
        *order = 0;
    }
}
