// Of a mapping without huge pages those pages are resident that the program touched, every third, and stay so.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGES = 1536, PAGE = 4096 };

static void say(const char *when, char *map)
{
    static unsigned char core[PAGES];
    static uint64_t entries[PAGES];
    int resident = 0, present = 0, wrong = 0;
    int file = open("/proc/self/pagemap", O_RDONLY);
    mincore(map, PAGES * PAGE, core);
    ssize_t got = pread(file, entries, sizeof entries, (uintptr_t)map / PAGE * 8);
    for (int i = 0; i < PAGES; i++) {
        resident += core[i] & 1;
        present += entries[i] >> 63;
        wrong += (core[i] & 1) != (i % 3 == 0);
    }
    close(file);
    printf("%s: resident %d, present %d of %d, wrong %d\n", when, resident, got == sizeof entries ? present : -1, PAGES,
           wrong);
}

int main(void)
{
    char *map = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(map, PAGES * PAGE, MADV_NOHUGEPAGE);
    for (int i = 0; i < PAGES; i += 3)
        map[i * PAGE] = 1;
    say("at once", map);
    usleep(60000);
    say("later", map);
    madvise(map, PAGES * PAGE, MADV_DONTNEED);
    for (int i = 0; i < PAGES; i += 3)
        map[i * PAGE] = 1;
    say("dropped and touched again", map);
}
