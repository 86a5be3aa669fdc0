/* Writes a tag of its own into pages of each kind of memory, and into the file argv[1] which tag is at which address; with
 * argv[2], small blocks on the heap until so many bytes; with argv[3], the file gets /proc/self/maps behind that. Ends with 3,
 * all tags still in place, but for one region that is unmapped before. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { PAGES = 8, MAPS = 4, MAP_BYTES = 40960, BLOCK = 1008, DEPTH = 3, GONE = 5 };

struct tag { uint32_t magic, kind, number, check; };

static char data[PAGES * 4096] = { 1 };
static char bss[PAGES * 4096];
static FILE *out;

static void tag(int kind, uint32_t number, volatile void *at)
{
    volatile struct tag *t = (volatile struct tag *)(((uintptr_t)at + 15) & ~(uintptr_t)15);
    t->magic = 0x7461676c;
    t->kind = kind;
    t->number = number;
    t->check = ~(kind * 65599u + number);
    fprintf(out, "%d %u %llx\n", kind, number, (unsigned long long)(uintptr_t)t);
}

static void copy_maps(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    int c;
    fputs("maps\n", out);
    while (maps && (c = getc(maps)) != EOF)
        putc(c, out);
}

__attribute__((noinline)) static void deeper(int depth, int maps)
{
    volatile char frame[3 * 4096];
    for (int i = 0; i < 3; i++)
        tag(4, depth * 3 + i, frame + 4096 * i);
    if (depth + 1 < DEPTH)
        deeper(depth + 1, maps);
    if (maps)
        copy_maps();
    fclose(out);
    exit(3);
}

int main(int argc, char **argv)
{
    char *map[MAPS];
    char *odd = mmap(0, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *gone = mmap(0, GONE * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long bytes = argc > 2 ? atol(argv[2]) : 0;
    out = fopen(argv[1], "w");
    if (!out)
        return 1;
    for (int i = 0; i < MAPS; i++) {
        map[i] = mmap(0, MAP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (int page = 0; page < MAP_BYTES / 4096; page++)
            tag(3, i * 10 + page, map[i] + 4096 * page);
    }
    for (int i = 0; i < PAGES; i++) {
        tag(0, i, data + 4096 * i);
        tag(1, i, bss + 4096 * i);
    }
    tag(5, 0, odd);
    for (int i = 0; i < GONE; i++)
        tag(7, i, gone + 4096 * i);
    munmap(gone, GONE * 4096);
    for (int i = 0; i < 20; i++)
        tag(2, i, malloc(5000));
    for (long i = 0; i * BLOCK < bytes; i++) {
        char *block = malloc(BLOCK - 16);
        if (i % 64 == 0)
            tag(6, i, block);
    }
    deeper(0, argc > 3);
}
