// Faults tell the right address and kind: unmapped, forbidden, not canonical, behind the end of a file.
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static sigjmp_buf back;
static volatile char *volatile address;
static volatile sig_atomic_t number, code;
static volatile int sink;

static void on_fault(int signal, siginfo_t *info, void *context)
{
    number = signal;
    code = info->si_code;
    address = info->si_addr;
    siglongjmp(back, 1);
}

static void try(const char *what, volatile char *at, int writes)
{
    number = code = 0;
    address = 0;
    if (!sigsetjmp(back, 1)) {
        if (writes)
            *at = 1;
        else
            sink += *at;
    }
    printf("%s: signal %d, code %d, address off by %ld\n", what, number, code, number ? (long)(address - at) : 0L);
}

int main(void)
{
    struct sigaction act = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
    sigaction(SIGSEGV, &act, 0);
    sigaction(SIGBUS, &act, 0);
    char *map = mmap(0, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(map + 4096, 4096);
    mprotect(map + 2 * 4096, 4096, PROT_READ);
    mprotect(map + 3 * 4096, 4096, PROT_NONE);
    int file = open("short", O_CREAT | O_RDWR, 0644);
    ftruncate(file, 5000);
    char *mapped = mmap(0, 4 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    try("mapped", map + 17, 1);
    try("unmapped, read", map + 4096 + 17, 0);
    try("unmapped, written", map + 4096 + 4095, 1);
    try("read-only, read", map + 2 * 4096 + 3, 0);
    try("read-only, written", map + 2 * 4096 + 3, 1);
    try("forbidden, read", map + 3 * 4096 + 1234, 0);
    try("null", (char *)0, 0);
    try("last page of the file", mapped + 8191, 1);
    try("behind the file", mapped + 8192 + 5, 0);
    try("behind the file, written", mapped + 3 * 4096 + 5, 1);
}
