// Counts the threads of the process, as /proc/self/task and /proc/self/status tell, alone and with three more.
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_barrier_t barrier;

static void say(void)
{
    char line[256];
    int tasks = 0, threads = 0;
    DIR *folder = opendir("/proc/self/task");
    for (struct dirent *entry; (entry = readdir(folder));)
        tasks += entry->d_name[0] != '.';
    closedir(folder);
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status))
        sscanf(line, "Threads: %d", &threads);
    fclose(status);
    printf("tasks %d, threads %d\n", tasks, threads);
}

static void *other(void *unused)
{
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return 0;
}

int main(void)
{
    pthread_t threads[3];
    alarm(60);
    say();
    pthread_barrier_init(&barrier, 0, 4);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], 0, other, 0);
    pthread_barrier_wait(&barrier);
    say();
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], 0);
}
