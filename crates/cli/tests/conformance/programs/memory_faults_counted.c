// Touching fresh pages costs at least one fault each, as the kernel counts, and touching them again none.
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PAGES = 512, PAGE = 4096 };

static long faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt;
}

int main(void)
{
    char *map = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(map, PAGES * PAGE, MADV_NOHUGEPAGE);
    long before = faults();
    for (int i = 0; i < PAGES; i++)
        map[i * PAGE] = 1;
    long between = faults();
    for (int i = 0; i < PAGES; i++)
        map[i * PAGE]++;
    long after = faults();
    printf("at least one each: %d, then fewer than 100: %d\n", between - before >= PAGES, after - between < 100);
}
