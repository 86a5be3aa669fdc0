// Access to an address that no page can have raises SIGSEGV from the kernel, without an address.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>

static sigjmp_buf back;
static volatile sig_atomic_t code, address_given;

static void on_fault(int signal, siginfo_t *info, void *context)
{
    code = info->si_code;
    address_given = info->si_addr != 0;
    siglongjmp(back, 1);
}

int main(void)
{
    struct sigaction act = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
    sigaction(SIGSEGV, &act, 0);
    if (!sigsetjmp(back, 1)) {
        printf("no fault: %d\n", *(volatile char *)0x8000123456789abcUL);
    }
    printf("SI_KERNEL: %d, address given: %d\n", code == SI_KERNEL, address_given);
}
