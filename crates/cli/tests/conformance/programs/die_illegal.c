// An undefined instruction raises SIGILL at its own address, and kills by default.
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <ucontext.h>

extern char bad[];
static volatile sig_atomic_t caught, address_right, rip_right;

static void on_illegal(int number, siginfo_t *info, void *context)
{
    ucontext_t *state = context;
    caught++;
    address_right = info->si_addr == bad;
    rip_right = state->uc_mcontext.gregs[REG_RIP] == (long)bad;
    state->uc_mcontext.gregs[REG_RIP] += 2;
}

static __attribute__((noinline)) void run_it(void)
{
    __asm__ volatile(".globl bad\nbad: ud2" ::: "memory");
}

int main(void)
{
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    struct sigaction act = { .sa_sigaction = on_illegal, .sa_flags = SA_SIGINFO };
    sigaction(SIGILL, &act, 0);
    run_it();
    printf("caught %d, address right: %d, instruction pointer right: %d\n", caught, address_right, rip_right);
    fflush(stdout);
    signal(SIGILL, SIG_DFL);
    run_it();
}
