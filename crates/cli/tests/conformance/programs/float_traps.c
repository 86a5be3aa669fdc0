// A program may have SIGFPE for floats too, with the kind and the place.
// flags: -lm
#include <fenv.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>

static sigjmp_buf back;
static volatile sig_atomic_t code;

static void on_fault(int number, siginfo_t *info, void *context)
{
    code = info->si_code;
    siglongjmp(back, 1);
}

int main(void)
{
    volatile double zero = 0, one = 1, large = 1e308, result;
    sigaction(SIGFPE, &(struct sigaction){ .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO }, 0);
    for (volatile int i = 0; i < 3; i++) {
        code = 0;
        feclearexcept(FE_ALL_EXCEPT);
        feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW);
        if (!sigsetjmp(back, 1))
            result = i == 0 ? one / zero : i == 1 ? zero / zero : large * large;
        fedisableexcept(FE_ALL_EXCEPT);
        printf("division %d, invalid %d, overflow %d\n", code == FPE_FLTDIV, code == FPE_FLTINV, code == FPE_FLTOVF);
    }
}
