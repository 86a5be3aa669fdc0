// Mappings at fixed addresses that must not replace anything are refused where they would, and made where not.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

static void *map_at(void *at, size_t bytes, int flags)
{
    return mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

int main(void)
{
    char *map = map_at(0, 16 * PAGE, 0);
    memset(map, 'a', 16 * PAGE);
    void *got;
    got = map_at(map + 5 * PAGE, PAGE, MAP_FIXED_NOREPLACE);
    printf("not replaced: %s\n", got == MAP_FAILED ? strerror(errno) : "done");
    munmap(map + 10 * PAGE, 2 * PAGE);
    got = map_at(map + 10 * PAGE, 2 * PAGE, MAP_FIXED_NOREPLACE);
    printf("into the hole: %d\n", got == map + 10 * PAGE);
    got = map_at(map + 11 * PAGE, 8 * PAGE, MAP_FIXED_NOREPLACE);
    printf("partly taken: %s\n", got == MAP_FAILED ? strerror(errno) : "done");
    got = map_at((void *)0x200000000000, PAGE, MAP_FIXED_NOREPLACE);
    printf("far away: %d\n", got == (void *)0x200000000000);
    got = map_at(0, 1UL << 47, MAP_NORESERVE);
    printf("as large as all: %s\n", got == MAP_FAILED ? strerror(errno) : "done");
    printf("untouched: %d\n", map[5 * PAGE] == 'a' && map[15 * PAGE] == 'a');
}
