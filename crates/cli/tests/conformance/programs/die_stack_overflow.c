// Endless recursion meets the stack's limit with a fault near the stack pointer, and kills without a handler.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static sigjmp_buf back;
static volatile sig_atomic_t near_stack;

static void on_fault(int number, siginfo_t *info, void *context)
{
    long stack = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RSP], at = (long)info->si_addr;
    near_stack = at > stack - 65536 && at < stack + 65536;
    siglongjmp(back, 1);
}

static __attribute__((noinline)) int deeper(int depth)
{
    volatile char frame[4000];
    frame[0] = depth;
    return deeper(depth + 1) + frame[0];
}

int main(void)
{
    static char alternative[65536];
    alarm(60);
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    setrlimit(RLIMIT_STACK, &(struct rlimit){ 1 << 20, 8 << 20 });
    stack_t stack = { .ss_sp = alternative, .ss_size = sizeof alternative };
    sigaltstack(&stack, 0);
    struct sigaction act = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };
    sigaction(SIGSEGV, &act, 0);
    if (!sigsetjmp(back, 1))
        deeper(0);
    printf("caught near the stack pointer: %s\n", near_stack ? "yes" : "no");
    fflush(stdout);
    signal(SIGSEGV, SIG_DFL);
    return deeper(0);
}
