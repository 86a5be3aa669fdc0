// A nested function whose address is taken runs from code that the compiler puts on the stack, in a thread too.
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static __attribute__((noinline)) int apply(int (*function)(int), int count)
{
    int sum = 0;
    for (int i = 0; i < count; i++)
        sum += function(i);
    return sum;
}

static __attribute__((noinline)) int times(int factor)
{
    int calls = 0;
    int multiply(int value)
    {
        calls++;
        return value * factor;
    }
    return apply(multiply, 10) + calls * 1000000;
}

static void *in_thread(void *unused)
{
    for (int i = 0; i < 3; i++)
        printf("thread %d\n", times(i));
    return 0;
}

int main(void)
{
    pthread_t thread;
    alarm(60);
    for (int i = 0; i < 3; i++)
        printf("main %d\n", times(i + 100));
    pthread_create(&thread, 0, in_thread, 0);
    pthread_join(thread, 0);
}
