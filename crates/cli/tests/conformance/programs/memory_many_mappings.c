// Two thousand small mappings with gaps between them can be made, each holds its own, and half can be unmapped.
#include <stdio.h>
#include <sys/mman.h>

enum { COUNT = 2000, PAGE = 4096 };

int main(void)
{
    int refused = 0, wrong = 0;
    char *base = mmap(0, 2L * COUNT * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (long i = 0; i < COUNT; i++)
        if (mprotect(base + 2 * i * PAGE, PAGE, PROT_READ | PROT_WRITE))
            refused++;
        else
            *(int *)(base + 2 * i * PAGE + 64) = i;
    for (long i = 0; i < COUNT; i += 2)
        munmap(base + 2 * i * PAGE, PAGE);
    for (long i = 1; i < COUNT; i += 2)
        wrong += *(int *)(base + 2 * i * PAGE + 64) != i;
    printf("refused %d, wrong %d\n", refused, wrong);
}
