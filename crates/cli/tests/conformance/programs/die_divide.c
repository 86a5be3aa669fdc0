// Division by zero and of the smallest number by -1 raise SIGFPE of the right kind, and kill by default.
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>

static sigjmp_buf back;
static volatile sig_atomic_t code;

static void on_fault(int number, siginfo_t *info, void *context)
{
    code = info->si_code;
    siglongjmp(back, 1);
}

static int divide(volatile int a, volatile int b)
{
    volatile int result = 0;
    code = 0;
    if (!sigsetjmp(back, 1))
        result = a / b;
    printf("%s, result %d\n", code == FPE_INTDIV ? "FPE_INTDIV" : code ? "other" : "no signal", result);
    return result;
}

int main(void)
{
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    struct sigaction act = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
    sigaction(SIGFPE, &act, 0);
    divide(7, 2);
    divide(7, 0);
    divide(INT_MIN, -1);
    signal(SIGFPE, SIG_DFL);
    fflush(stdout);
    volatile int zero = 0;
    return 5 / zero;
}
