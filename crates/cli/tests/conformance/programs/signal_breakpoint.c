// The program's own breakpoint instruction raises SIGTRAP behind it, and kills by default.
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <ucontext.h>

static volatile sig_atomic_t caught, behind;
extern char after_trap[];

static void on_trap(int number, siginfo_t *info, void *context)
{
    caught++;
    behind = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] == (long)after_trap;
}

static __attribute__((noinline)) void trap(void)
{
    __asm__ volatile("int3\n.globl after_trap\nafter_trap: nop" ::: "memory");
}

int main(void)
{
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    sigaction(SIGTRAP, &(struct sigaction){ .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO }, 0);
    trap();
    trap();
    printf("caught %d, behind the instruction: %d\n", caught, behind);
    fflush(stdout);
    signal(SIGTRAP, SIG_DFL);
    trap();
}
