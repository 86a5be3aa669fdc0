// The lowest free numbers are given out first, at the start, after closing one, and in a thread.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void *in_thread(void *unused)
{
    int number = dup(0);
    printf("thread: %d\n", number);
    close(number);
    return 0;
}

int main(void)
{
    pthread_t thread;
    int ends[2], a = dup(0), b = dup(0), c = open("/dev/null", O_RDONLY);
    alarm(60);
    printf("first: %d %d %d\n", a, b, c);
    close(b);
    printf("after closing: %d, ", dup(0));
    printf("from 100: %d\n", fcntl(0, F_DUPFD, 100));
    pipe(ends);
    printf("pipe: %d %d\n", ends[0], ends[1]);
    pthread_create(&thread, 0, in_thread, 0);
    pthread_join(thread, 0);
    usleep(10000);
    printf("later: %d\n", dup(0));
}
