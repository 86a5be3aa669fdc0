// Semaphores between threads, and between processes by shared memory, count right.
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static sem_t slots, items;
static int ring[4], put, taken;

static void *producer(void *unused)
{
    for (int i = 1; i <= 300; i++) {
        sem_wait(&slots);
        ring[put++ % 4] = i;
        sem_post(&items);
    }
    return 0;
}

int main(void)
{
    pthread_t thread;
    long sum = 0;
    alarm(60);
    sem_init(&slots, 0, 4);
    sem_init(&items, 0, 0);
    pthread_create(&thread, 0, producer, 0);
    for (int i = 0; i < 300; i++) {
        sem_wait(&items);
        sum = sum * 3 % 1000003 + ring[taken++ % 4];
        sem_post(&slots);
    }
    pthread_join(thread, 0);
    printf("sum %ld, none left: %d", sum, sem_trywait(&items));
    printf(", %s\n", strerror(errno));
    fflush(stdout);
    sem_t *shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sem_init(shared, 1, 0);
    sem_init(shared + 1, 1, 0);
    if (fork() == 0) {
        for (int i = 0; i < 50; i++) {
            sem_wait(shared);
            sem_post(shared + 1);
        }
        _exit(0);
    }
    for (int i = 0; i < 50; i++) {
        sem_post(shared);
        sem_wait(shared + 1);
    }
    int left;
    sem_getvalue(shared, &left);
    printf("left %d\n", left);
    wait(0);
}
