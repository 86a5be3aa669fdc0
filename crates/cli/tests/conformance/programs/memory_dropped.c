// Memory given back reads as zero where dropped, as before elsewhere; freed lazily it holds the old, zero, or what is new.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 1024 };

int main(void)
{
    int wrong = 0, lazily = 0, new = 0;
    char *map = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(map, PAGES * PAGE, MADV_HUGEPAGE);
    memset(map, 7, PAGES * PAGE);
    usleep(15000);
    for (int i = 0; i < PAGES; i += 3)
        madvise(map + i * PAGE, PAGE, MADV_DONTNEED);
    usleep(15000);
    for (int i = 0; i < PAGES; i++)
        wrong += map[i * PAGE + 99] != (i % 3 ? 7 : 0) || map[i * PAGE + PAGE - 1] != (i % 3 ? 7 : 0);
    printf("wrong %d\n", wrong);
    memset(map, 7, PAGES * PAGE);
    printf("lazily: %d\n", madvise(map, PAGES * PAGE, MADV_FREE));
    for (int i = 0; i < PAGES; i += 4)
        map[i * PAGE + 5] = 9;
    usleep(5000);
    for (int i = 0; i < PAGES; i++) {
        lazily += map[i * PAGE + 99] != 7 && map[i * PAGE + 99] != 0;
        new += i % 4 == 0 && map[i * PAGE + 5] != 9;
    }
    printf("neither old nor zero %d, new ones lost %d\n", lazily, new);
    munmap(map, PAGES * PAGE);
    printf("unmapped: %s\n", madvise(map, PAGE, MADV_DONTNEED) ? strerror(errno) : "done");
}
