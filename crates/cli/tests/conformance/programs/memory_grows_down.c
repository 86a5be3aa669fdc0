// A mapping that grows down does so when the page below it is touched, as stacks do, and the main stack does too.
#include <alloca.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static __attribute__((noinline)) int use_stack(int kib)
{
    char *room = alloca(kib << 10);
    memset(room, kib, kib << 10);
    return room[0] == (char)kib && room[(kib << 10) - 1] == (char)kib;
}

int main(void)
{
    int filled = 0;
    char *at = mmap((void *)0x240000400000, 4096, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED_NOREPLACE, -1, 0);
    if (at == MAP_FAILED)
        return 1;
    at[0] = 'z';
    for (int i = 1; i <= 32; i++)
        at[-i * 4096] = i;
    for (int i = 1; i <= 32; i++)
        filled += at[-i * 4096] == i;
    printf("grown by %d pages, first holds %c\n", filled, at[0]);
    for (int kib = 100; kib <= 3000; kib += 580)
        printf("stack of %d KiB: %d\n", kib, use_stack(kib));
}
