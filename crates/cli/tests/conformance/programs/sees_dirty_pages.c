// Pages count as written since the marks were cleared that the program wrote, where the kernel keeps such marks.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGES = 64, PAGE = 4096 };

int main(void)
{
    uint64_t entries[PAGES] = { 0 };
    volatile char read_one;
    int dirty = 0, dirty_before = 0, table = open("/proc/self/pagemap", O_RDONLY);
    char *map = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(map, PAGES * PAGE, MADV_NOHUGEPAGE);
    for (int i = 0; i < PAGES; i++)
        map[i * PAGE] = i;
    int file = open("/proc/self/clear_refs", O_WRONLY);
    int cleared = write(file, "4", 1);
    usleep(30000);
    pread(table, entries, sizeof entries, (uintptr_t)map / PAGE * 8);
    for (int i = 0; i < PAGES; i++)
        dirty_before += entries[i] >> 55 & 1;
    for (int i = 0; i < PAGES; i += 5)
        map[i * PAGE]++;
    for (int i = 1; i < PAGES; i += 5)
        read_one = map[i * PAGE];
    pread(table, entries, sizeof entries, (uintptr_t)map / PAGE * 8);
    for (int i = 0; i < PAGES; i++)
        dirty += entries[i] >> 55 & 1;
    printf("cleared: %d, marked before %d, after writing 13 pages %d\n", cleared, dirty_before, dirty);
}
