// exec in another thread ends all others; the new program has one thread, whose number is the process's.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static char **arguments;

static void *busy(void *unused)
{
    for (;;)
        pause();
}

static void *runner(void *unused)
{
    char number[16];
    snprintf(number, sizeof number, "%d", getpid());
    execl(arguments[0], arguments[0], number, NULL);
    _exit(1);
}

int main(int argc, char **argv)
{
    pthread_t thread;
    alarm(60);
    if (argc > 1) {
        printf("same process: %d, first thread: %d\n", atoi(argv[1]) == getpid(), syscall(SYS_gettid) == getpid());
        return 13;
    }
    arguments = argv;
    pthread_create(&thread, 0, busy, 0);
    pthread_create(&thread, 0, busy, 0);
    pthread_create(&thread, 0, runner, 0);
    pthread_join(thread, 0);
}
