// Signals that come at any time leave registers, flags and the 128 bytes below the stack pointer as they were.
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>

static volatile sig_atomic_t came;

static void on_signal(int number)
{
    volatile double a[64];
    volatile char fill[4096];
    for (int i = 0; i < 64; i++)
        a[i] = came * 1.5 + i;
    for (int i = 0; i < 4096; i++)
        fill[i] = came;
    came++;
}

int main(void)
{
    struct itimerval often = { { 0, 1000 }, { 0, 1000 } }, off = { { 0, 0 }, { 0, 0 } };
    long wrong = 0, rounds = 0;
    signal(SIGALRM, on_signal);
    setitimer(ITIMER_REAL, &often, 0);
    time_t limit = time(0) + 30;
    while (came < 30 && time(0) < limit) {
        long sum = 0, zone = 0;
        double d = 0;
        __asm__ volatile("movl $2000, %%ecx\n movq $5, -120(%%rsp)\n pxor %%xmm5, %%xmm5\n movl $3, %%eax\n"
                         "cvtsi2sd %%eax, %%xmm6\n xorl %%eax, %%eax\n"
                         "1: addq $7, %%rax\n addsd %%xmm6, %%xmm5\n addq $1, -120(%%rsp)\n decl %%ecx\n jnz 1b\n"
                         "movq %%rax, %0\n movq -120(%%rsp), %1\n movsd %%xmm5, %2"
                         : "=r"(sum), "=r"(zone), "=m"(d)::"rax", "rcx", "xmm5", "xmm6", "memory", "cc");
        wrong += sum != 14000 || zone != 2005 || d != 6000;
        rounds++;
    }
    setitimer(ITIMER_REAL, &off, 0);
    printf("came: %d, wrong: %ld\n", came >= 30, wrong);
}
