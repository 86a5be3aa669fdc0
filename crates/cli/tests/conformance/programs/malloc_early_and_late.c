// Constructors, exit handlers, thread destructors and destructors may allocate, and free what the others allocated.
// flags: -fno-builtin
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *early, *middle;
static pthread_key_t key;

__attribute__((constructor(101))) static void first(void)
{
    early = strdup("from a constructor");
    free(malloc(1 << 20));
}

static void of_thread(void *value)
{
    char *copy = strdup(value);
    printf("thread's end: %s\n", copy);
    free(copy);
    free(value);
}

static void *thread_main(void *unused)
{
    pthread_setspecific(key, strdup("from a thread"));
    return 0;
}

static void at_exit(void)
{
    printf("exit: %s\n", early);
    free(early);
    early = strdup("from an exit handler");
}

__attribute__((destructor(101))) static void last(void)
{
    printf("destructor: %s, %s\n", early, middle);
    free(early);
    free(middle);
    free(calloc(1000, 1000));
}

int main(void)
{
    pthread_t thread;
    alarm(60);
    atexit(at_exit);
    middle = strdup("from main");
    pthread_key_create(&key, of_thread);
    pthread_create(&thread, 0, thread_main, 0);
    pthread_join(thread, 0);
}
