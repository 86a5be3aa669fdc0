// After pthread_exit in main the process lives until its last thread returns, then ends with 0 and runs the handlers.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void bye(void)
{
    printf("handler\n");
}

static void cleanup(void *what)
{
    printf("cleanup of %s\n", (char *)what);
}

static void *other(void *main_thread)
{
    printf("main joined: %d\n", pthread_join(*(pthread_t *)main_thread, 0));
    usleep(20000);
    return 0;
}

int main(void)
{
    static pthread_t thread, self;
    alarm(60);
    self = pthread_self();
    atexit(bye);
    pthread_create(&thread, 0, other, &self);
    pthread_cleanup_push(cleanup, "main");
    pthread_exit((void *)77);
    pthread_cleanup_pop(0);
}
