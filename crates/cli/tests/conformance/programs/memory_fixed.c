// Mappings at fixed addresses replace what was there and split what they hit, or are refused where none can be.
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
    void *got = map_at(map + 4 * PAGE, 4 * PAGE, MAP_FIXED);
    printf("replaced: %d, holds %d, ", got == map + 4 * PAGE, map[4 * PAGE]);
    printf("neighbours %c %c\n", map[4 * PAGE - 1], map[8 * PAGE]);
    got = map_at(map + 1, PAGE, MAP_FIXED);
    printf("not aligned: %s\n", got == MAP_FAILED ? strerror(errno) : "done");
    got = map_at(0, 0, 0);
    printf("of no length: %s\n", got == MAP_FAILED ? strerror(errno) : "done");
    got = map_at((void *)0x7ffffffff000, PAGE, MAP_FIXED);
    printf("behind the last address: %s\n", got == MAP_FAILED ? strerror(errno) : "done");
    printf("unmapped twice: %d %d\n", munmap(map, PAGE), munmap(map, PAGE));
}
