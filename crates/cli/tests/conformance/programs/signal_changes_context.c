// A handler sees the general registers of the interrupted code and may change them and the instruction pointer.
#include <signal.h>
#include <stdio.h>
#include <ucontext.h>

static volatile sig_atomic_t seen_rbx, seen_r12;
extern char faulting[], behind[];

static void on_fault(int number, siginfo_t *info, void *context)
{
    mcontext_t *state = &((ucontext_t *)context)->uc_mcontext;
    seen_rbx = state->gregs[REG_RBX];
    seen_r12 = state->gregs[REG_R12];
    state->gregs[REG_RBX] = 99;
    if (state->gregs[REG_RIP] == (long)faulting)
        state->gregs[REG_RIP] = (long)behind;
}

int main(void)
{
    struct sigaction act = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
    long rbx = 77, r12 = 88, skipped = 1;
    sigaction(SIGSEGV, &act, 0);
    __asm__ volatile("movq %[rbx], %%rbx\n movq %[r12], %%r12\n xorl %%eax, %%eax\n"
                     ".globl faulting\nfaulting: movq $1, (%%rax)\n movq $0, %[skipped]\n"
                     ".globl behind\nbehind: movq %%rbx, %[rbx]\n movq %%r12, %[r12]"
                     : [rbx] "+m"(rbx), [r12] "+m"(r12), [skipped] "+m"(skipped)::"rax", "rbx", "r12", "memory");
    printf("handler saw %d and %d; after it %ld and %ld, jumped over: %ld\n", seen_rbx, seen_r12, rbx, r12, skipped);
}
