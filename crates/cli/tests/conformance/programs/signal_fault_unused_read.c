// Reading where nothing may be read faults even when nobody uses the value.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>

static sigjmp_buf back;
static volatile int faults;

static void on_fault(int signal)
{
    faults++;
    siglongjmp(back, 1);
}

int main(void)
{
    signal(SIGSEGV, on_fault);
    char *map = mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (volatile int i = 0; i < 10; i++)
        if (!sigsetjmp(back, 1))
            __asm__ volatile("movq (%0), %%rax\n xorl %%eax, %%eax" ::"r"(map + i) : "rax");
    printf("faults %d of 10\n", faults);
}
