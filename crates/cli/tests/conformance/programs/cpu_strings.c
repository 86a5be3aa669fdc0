// String instructions move, fill, compare and search, forwards and backwards, and over the borders of pages.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

int main(void)
{
    char *map = mmap(0, 5 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(map + 4 * 4096, 4096, PROT_NONE);
    for (int i = 0; i < 6000; i++)
        map[i] = i * 7;
    char *from = map, *to = map + 4 * 4096 - 6000, *at;
    long count = 6000;
    __asm__ volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(count)::"memory");
    printf("moved to the end: %d, left %ld\n", !memcmp(map, map + 4 * 4096 - 6000, 6000), count);
    from = map + 5999, to = map + 5999 + 100, count = 6000;
    __asm__ volatile("std\n rep movsb\n cld" : "+S"(from), "+D"(to), "+c"(count)::"memory");
    printf("backwards, overlapping: %d %d\n", map[100] == 0, map[6099] == (char)(5999 * 7));
    to = map + 3, count = 700;
    __asm__ volatile("rep stosq" : "+D"(to), "+c"(count) : "a"(0x1122334455667788) : "memory");
    printf("filled: %x %x, ended at %ld\n", map[3], map[3 + 5599], (long)(to - map));
    map[4000] = 'x';
    at = map + 3, count = 6000;
    __asm__ volatile("repne scasb" : "+D"(at), "+c"(count) : "a"('x') : "cc");
    printf("found at %ld, left %ld\n", (long)(at - map), count);
    from = map + 11, to = map + 3, count = 5000;
    __asm__ volatile("repe cmpsb" : "+S"(from), "+D"(to), "+c"(count)::"cc");
    printf("differs after %ld\n", 5000 - count);
    memset(map + 3 * 4096, 5, 4095);
    map[4 * 4096 - 1] = 0;
    printf("library: %zu, %d\n", strlen(map + 3 * 4096), memchr(map + 3, 'x', 5000) == map + 4000);
}
