// Running code where none may run faults there: at no address, in an unmapped page, and in one that is not executable.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

static sigjmp_buf back;
static volatile sig_atomic_t code, address_right, pointer_right;
static void *volatile target;

static void on_fault(int signal, siginfo_t *info, void *context)
{
    code = info->si_code;
    address_right = info->si_addr == target;
    pointer_right = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] == (long)target;
    siglongjmp(back, 1);
}

static void run(const char *what, void *at)
{
    code = address_right = pointer_right = 0;
    target = at;
    if (!sigsetjmp(back, 1))
        ((void (*)(void))at)();
    printf("%s: code %d, address %d, instruction pointer %d\n", what, code, address_right, pointer_right);
}

int main(void)
{
    sigaction(SIGSEGV, &(struct sigaction){ .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO }, 0);
    char *map = mmap(0, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(map, 0xc3, 2 * 4096); /* ret */
    munmap(map + 4096, 4096);
    run("none", 0);
    run("unmapped", map + 4096 + 16);
    run("not executable", map + 32);
    mprotect(map, 4096, PROT_READ | PROT_EXEC);
    run("executable", map + 32);
    mprotect(map, 4096, PROT_NONE);
    run("forbidden", map + 32);
}
