// A collector's write barrier: pages are protected, and the first write to each faults and is let through, in each round.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGES = 64, PAGE = 4096 };
static char *heap;
static volatile int faults, elsewhere;
static char dirty[PAGES];

static void on_fault(int number, siginfo_t *info, void *context)
{
    long page = ((char *)info->si_addr - heap) / PAGE;
    if (page < 0 || page >= PAGES || (char *)info->si_addr < heap) {
        elsewhere++;
        signal(SIGSEGV, SIG_DFL);
        return;
    }
    faults++;
    dirty[page]++;
    mprotect(heap + page * PAGE, PAGE, PROT_READ | PROT_WRITE);
}

int main(void)
{
    unsigned sum = 0;
    heap = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaction(SIGSEGV, &(struct sigaction){ .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO }, 0);
    for (int round = 0; round < 4; round++) {
        mprotect(heap, PAGES * PAGE, PROT_READ);
        for (int i = round; i < PAGES * PAGE; i += 1000 + round * 3000)
            heap[i]++;
        int pages = 0;
        for (int i = 0; i < PAGES; i++)
            pages += dirty[i];
        printf("round %d: faults %d, dirty pages %d\n", round, faults, pages);
        faults = 0;
        memset(dirty, 0, sizeof dirty);
    }
    for (int i = 0; i < PAGES * PAGE; i++)
        sum = sum * 33 + heap[i];
    printf("sum %u, elsewhere %d\n", sum, elsewhere);
}
