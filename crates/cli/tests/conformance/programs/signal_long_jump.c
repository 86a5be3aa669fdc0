// A program may leave handlers by siglongjmp many times, with the mask restored, and locals and registers as they were.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static sigjmp_buf back;

static void on_signal(int number)
{
    siglongjmp(back, number);
}

int main(void)
{
    volatile int jumps = 0, blocked = 0, sum = 0;
    sigset_t now;
    signal(SIGSEGV, on_signal);
    signal(SIGUSR1, on_signal);
    for (volatile int i = 0; i < 200; i++) {
        int number = sigsetjmp(back, 1);
        if (!number) {
            if (i % 2)
                *(volatile int *)40 = 1;
            else
                raise(SIGUSR1);
            puts("not reached");
        }
        sum += number;
        jumps++;
        sigprocmask(SIG_BLOCK, 0, &now);
        blocked += sigismember(&now, SIGSEGV) + sigismember(&now, SIGUSR1);
    }
    printf("jumps %d, sum %d, left blocked %d\n", jumps, sum, blocked);
}
