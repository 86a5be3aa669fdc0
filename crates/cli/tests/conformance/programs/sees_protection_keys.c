// Counts the protection keys that the program can get, and whether one forbids access (needs hardware for them).
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static sigjmp_buf back;
static volatile sig_atomic_t code;

static void on_fault(int number, siginfo_t *info, void *context)
{
    code = info->si_code;
    siglongjmp(back, 1);
}

int main(void)
{
    int count = 0, keys[32];
    sigaction(SIGSEGV, &(struct sigaction){ .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO }, 0);
    while (count < 32 && (keys[count] = pkey_alloc(0, 0)) >= 0)
        count++;
    printf("keys: %d, then %s\n", count, strerror(errno));
    if (!count)
        return 0;
    volatile char *map = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pkey_mprotect((void *)map, 4096, PROT_READ | PROT_WRITE, keys[0]);
    pkey_set(keys[0], PKEY_DISABLE_ACCESS);
    if (!sigsetjmp(back, 1))
        map[0] = 1;
    printf("forbidden: %d\n", code == SEGV_PKUERR);
}
