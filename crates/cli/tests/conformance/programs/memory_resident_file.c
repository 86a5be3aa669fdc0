// Pages of a private file mapping are the program's own only where it wrote, and only these differ from the file.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGES = 120, PAGE = 4096 };

int main(void)
{
    static char page[PAGE];
    uint64_t entries[PAGES] = { 0 };
    int own = 0, differing = 0, file = open("data", O_CREAT | O_RDWR, 0644), table = open("/proc/self/pagemap", O_RDONLY);
    for (int i = 0; i < PAGES; i++) {
        memset(page, i, PAGE);
        write(file, page, PAGE);
    }
    char *map = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    for (int i = 0; i < PAGES; i += 4)
        map[i * PAGE + 10]++;
    usleep(30000);
    pread(table, entries, sizeof entries, (uintptr_t)map / PAGE * 8);
    for (int i = 0; i < PAGES; i++) {
        own += entries[i] >> 63 && !(entries[i] >> 61 & 1); /* present, and not a page of the file */
        pread(file, page, PAGE, i * PAGE);
        differing += memcmp(page, map + i * PAGE, PAGE) != 0;
    }
    printf("own pages %d, differing %d\n", own, differing);
    madvise(map, PAGES * PAGE, MADV_DONTNEED);
    printf("dropped: as the file again: %d\n", map[10] == 0 && map[40 * PAGE + 10] == 40);
}
