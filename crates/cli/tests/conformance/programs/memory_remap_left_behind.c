// A mapping that moves and leaves its old place mapped finds zero there; moving what is not mapped fails.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

int main(void)
{
    int wrong = 0;
    char *map = mmap(0, 100 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(map, 'm', 100 * 4096);
    char *copy = mremap(map, 100 * 4096, 100 * 4096, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
    if (copy == MAP_FAILED)
        return printf("refused: %s\n", strerror(errno)), 1;
    for (int i = 0; i < 100 * 4096; i += 1000)
        wrong += map[i] != 0 || copy[i] != 'm';
    printf("wrong %d\n", wrong);
    void *bad = mremap((void *)0x300000000000, 4096, 2 * 4096, MREMAP_MAYMOVE);
    printf("unmapped: %s\n", bad == MAP_FAILED ? strerror(errno) : "done");
}
