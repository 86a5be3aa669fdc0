// Children forked while other threads allocate can allocate too, and never hang.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int stop;

static void *churn(void *unused)
{
    while (!stop) {
        char *blocks[16];
        for (int i = 0; i < 16; i++)
            blocks[i] = malloc(100 << i % 8);
        for (int i = 0; i < 16; i++)
            free(blocks[i]);
    }
    return 0;
}

int main(void)
{
    pthread_t threads[2];
    int good = 0, status;
    alarm(60);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, churn, 0);
    for (int i = 0; i < 8; i++) {
        pid_t child = fork();
        if (!child) {
            alarm(20);
            int sum = 0;
            for (int size = 1; size < 300000; size = size * 2 + 1) {
                char *block = calloc(1, size);
                memset(block, 1, size);
                sum += block[size - 1];
                free(block);
            }
            _exit(sum);
        }
        waitpid(child, &status, 0);
        good += WIFEXITED(status) && WEXITSTATUS(status) == 18;
    }
    stop = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    printf("good children: %d of 8\n", good);
}
