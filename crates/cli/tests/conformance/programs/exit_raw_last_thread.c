// When all threads leave one by one with raw calls, the process ends with the code of the last, without handlers.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void bye(void)
{
    write(1, "handler ran\n", 12);
}

static void *other(void *unused)
{
    usleep(20000);
    write(1, "last thread leaves\n", 19);
    syscall(SYS_exit, 11);
    return 0;
}

int main(void)
{
    pthread_t thread;
    alarm(60);
    atexit(bye);
    pthread_create(&thread, 0, other, 0);
    syscall(SYS_exit, 4);
}
