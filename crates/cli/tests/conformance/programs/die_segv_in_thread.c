// A fault in another thread kills the whole process.
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static void *faulty(void *nowhere)
{
    usleep(5000);
    *(volatile int *)nowhere = 1;
    return 0;
}

int main(void)
{
    pthread_t thread;
    alarm(60);
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    puts("before");
    fflush(stdout);
    pthread_create(&thread, 0, faulty, (void *)16);
    pthread_join(thread, 0);
    puts("after");
}
