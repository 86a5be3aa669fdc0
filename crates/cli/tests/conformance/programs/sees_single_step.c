// The trap flag raises SIGTRAP once per instruction.
#include <signal.h>
#include <stdio.h>

static volatile sig_atomic_t caught, steps;

static void on_trap(int number, siginfo_t *info, void *context)
{
    caught++;
    steps += info->si_code == TRAP_TRACE;
}

int main(void)
{
    sigaction(SIGTRAP, &(struct sigaction){ .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO }, 0);
    __asm__ volatile("sub $128, %%rsp\n pushfq\n orq $0x100, (%%rsp)\n popfq\n"
                     "nop\n nop\n nop\n nop\n nop\n"
                     "pushfq\n andq $~0x100, (%%rsp)\n popfq\n add $128, %%rsp" ::: "memory", "cc");
    printf("caught %d, as steps %d\n", caught, steps);
}
