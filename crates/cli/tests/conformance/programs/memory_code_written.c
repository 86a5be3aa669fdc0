// Code written to a fresh executable page runs, and after it is written anew and the cache cleared, the new code runs.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static void put(unsigned char *at, int value)
{
    unsigned char code[] = { 0xb8, 0, 0, 0, 0, 0x01, 0xf8, 0xc3 }; /* mov eax, value; add eax, edi; ret */
    memcpy(code + 1, &value, 4);
    memcpy(at, code, sizeof code);
    __builtin___clear_cache((char *)at, (char *)at + sizeof code);
}

int main(void)
{
    long sum = 0;
    unsigned char *page = mmap(0, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int (*volatile call)(int) = (int (*)(int))(page + 4090);
    for (int i = 0; i < 50; i++) {
        put(page + 4090, i * 1000);
        for (int j = 0; j < 20; j++)
            sum += call(j);
    }
    printf("rewritten: %ld\n", sum);
    put(page, 5);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    printf("after mprotect: %d\n", ((int (*)(int))page)(1));
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
    put(page, 70);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    printf("after writing between: %d\n", ((int (*)(int))page)(1));
    munmap(page, 8192);
    page = mmap(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    put(page, 900);
    printf("in a new mapping at the same place: %d\n", ((int (*)(int))page)(1));
}
