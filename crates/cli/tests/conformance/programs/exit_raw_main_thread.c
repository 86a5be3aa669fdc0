// The main thread may leave by the raw call while another thread goes on and ends the process later.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int main_is_gone(void)
{
    char line[512] = "";
    FILE *stat = fopen("/proc/self/stat", "r");
    if (!stat)
        return 0;
    fgets(line, sizeof line, stat);
    fclose(stat);
    char *end = strrchr(line, ')');
    return end && end[2] == 'Z';
}

static void *other(void *unused)
{
    for (int i = 0; i < 5000 && !main_is_gone(); i++)
        usleep(1000);
    printf("the main thread is gone: %s\n", main_is_gone() ? "yes" : "no");
    exit(5);
}

int main(void)
{
    pthread_t thread;
    alarm(60);
    pthread_create(&thread, 0, other, 0);
    syscall(SYS_exit, 3);
}
