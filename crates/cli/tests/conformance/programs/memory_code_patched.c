// A program may make its own text writable and patch a function that ran before.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

__attribute__((noinline, noclone, aligned(64))) int answer(void)
{
    __asm__ volatile("");
    return 1111;
}

int main(void)
{
    int (*volatile call)(void) = answer;
    int before = call(), value = 2222, found = 0;
    unsigned char *page = (unsigned char *)((long)answer & ~4095L), *at = (unsigned char *)answer;
    printf("writable: %d\n", mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC));
    for (int i = 0; i < 16 && !found; i++)
        if (!memcmp(at + i, &before, 4)) {
            memcpy(at + i, &value, 4);
            found = 1;
        }
    __builtin___clear_cache((char *)at, (char *)at + 32);
    printf("back: %d\n", mprotect(page, 8192, PROT_READ | PROT_EXEC));
    printf("before %d, found %d, after %d\n", before, found, call());
}
