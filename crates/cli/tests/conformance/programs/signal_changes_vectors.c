// A handler sees the vector registers of the interrupted code and may change them.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

static double seen;

static void handler(int number, siginfo_t *info, void *context)
{
    mcontext_t *state = &((ucontext_t *)context)->uc_mcontext;
    double other = 2.5;
    memcpy(&seen, state->fpregs->_xmm[3].element, 8);
    memcpy(state->fpregs->_xmm[3].element, &other, 8);
    state->gregs[REG_RAX] = (long)&seen;
}

int main(void)
{
    double value = 1234.0;
    sigaction(SIGSEGV, &(struct sigaction){ .sa_sigaction = handler, .sa_flags = SA_SIGINFO }, 0);
    __asm__ volatile("movsd %0, %%xmm3\n xorl %%eax, %%eax\n movq (%%rax), %%rax\n movsd %%xmm3, %0"
                     : "+m"(value)::"rax", "xmm3", "memory");
    printf("handler saw %g, after it %g\n", seen, value);
}
