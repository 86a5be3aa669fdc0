// fork in a thread copies that thread only and runs the handlers for it in order, and the child may use threads.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char order[64];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void prepare_one(void) { strcat(order, "p1 "); }
static void prepare_two(void) { strcat(order, "p2 "); pthread_mutex_lock(&lock); }
static void parent_one(void) { strcat(order, "a1 "); }
static void parent_two(void) { strcat(order, "a2 "); pthread_mutex_unlock(&lock); }
static void child_one(void) { strcat(order, "c1 "); }
static void child_two(void) { strcat(order, "c2 "); pthread_mutex_unlock(&lock); }

static void *add(void *sum)
{
    pthread_mutex_lock(&lock);
    *(int *)sum += 5;
    pthread_mutex_unlock(&lock);
    return 0;
}

static void *forker(void *unused)
{
    int status = 0, sum = 0;
    pthread_t threads[3];
    pid_t child = fork();
    if (!child) {
        for (int i = 0; i < 3; i++)
            pthread_create(&threads[i], 0, add, &sum);
        for (int i = 0; i < 3; i++)
            pthread_join(threads[i], 0);
        printf("child: %s, first thread: %d, sum %d\n", order, syscall(SYS_gettid) == getpid(), sum);
        exit(sum);
    }
    waitpid(child, &status, 0);
    printf("parent: %s, child ended with %d\n", order, WEXITSTATUS(status));
    return 0;
}

int main(void)
{
    pthread_t thread;
    alarm(60);
    pthread_atfork(prepare_one, parent_one, child_one);
    pthread_atfork(prepare_two, parent_two, child_two);
    pthread_create(&thread, 0, forker, 0);
    pthread_join(thread, 0);
}
