// Two threads hand a turn to each other by a condition variable, three hundred times each, in strict order.
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn, turns[2];
static unsigned order;

static void *play(void *number)
{
    int me = (long)number;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 300; i++) {
        while (turn != me)
            pthread_cond_wait(&changed, &lock);
        turns[me]++;
        order = order * 3 + me;
        turn = !me;
        pthread_cond_signal(&changed);
    }
    pthread_mutex_unlock(&lock);
    return 0;
}

int main(void)
{
    pthread_t thread;
    alarm(60);
    pthread_create(&thread, 0, play, (void *)1);
    play((void *)0);
    pthread_join(thread, 0);
    printf("turns %d %d, order %u\n", turns[0], turns[1], order);
}
