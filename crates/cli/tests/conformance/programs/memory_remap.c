// Mappings grow, shrink and move by mremap, also several times and onto a fixed place, and keep what they held.
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };

static int holds(const char *map, int pages)
{
    for (int i = 0; i < pages; i++)
        if (map[i * PAGE] != (char)(i + 1) || map[i * PAGE + PAGE - 1] != (char)(i + 1))
            return 0;
    return 1;
}

int main(void)
{
    int pages = 4, filled = 0;
    char *map = mmap(0, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (; pages <= 2048; pages *= 2) {
        for (; filled < pages; filled++)
            map[filled * PAGE] = map[filled * PAGE + PAGE - 1] = filled + 1;
        map = mremap(map, pages * PAGE, pages * 2 * PAGE, MREMAP_MAYMOVE);
        if (pages % 3 == 1)
            usleep(2000);
        printf("%d pages: holds %d, fresh zero %d\n", pages * 2, holds(map, filled), map[pages * PAGE] == 0);
    }
    mremap(map, pages * PAGE, 100 * PAGE, 0);
    printf("shrunk: holds %d\n", holds(map, 100));
    char *place = mmap(0, 200 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *moved = mremap(map, 100 * PAGE, 100 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place + 50 * PAGE);
    printf("moved: %d, holds %d\n", moved == place + 50 * PAGE, holds(moved, 100));
}
