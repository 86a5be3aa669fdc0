// Sums, quotients, roots and conversions round in all four ways, and handlers and threads have the right way too.
// flags: -lm
#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned long bits(double value)
{
    unsigned long result;
    memcpy(&result, &value, 8);
    return result;
}

static void handler(int number)
{
    fesetround(FE_TONEAREST);
}

static void *in_thread(void *unused)
{
    printf("thread starts with %x\n", fegetround());
    return 0;
}

int main(void)
{
    int modes[] = { FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO };
    volatile double one = 1, three = 3, tiny = 1e-300, two = 2, half = -2.5;
    volatile float f = 1.0f, g = 3.0f;
    pthread_t thread;
    alarm(60);
    signal(SIGUSR1, handler);
    for (int i = 0; i < 4; i++) {
        fesetround(modes[i]);
        float quotient = f / g;
        unsigned single;
        memcpy(&single, &quotient, 4);
        printf("%lx %lx %lx ", bits(one / three), bits(-one / three), bits(one + tiny));
        double root;
        __asm__ volatile("sqrtsd %1, %0" : "=x"(root) : "x"(two));
        printf("%lx %lx %x ", bits(root), bits(one - tiny), single);
        printf("%ld %g %lx\n", lrint(half), rint(half), bits((double)0x7fffffffffffffffL));
        raise(SIGUSR1);
        printf("after a signal: %d\n", fegetround() == modes[i]);
        fesetround(modes[i]);
    }
    pthread_create(&thread, 0, in_thread, 0);
    pthread_join(thread, 0);
    fesetround(FE_TONEAREST);
    printf("read and printed: %lx %.20g\n",
           bits(strtod("0.1000000000000000055511151231257827021181583404541015625", 0)), 0.1);
}
