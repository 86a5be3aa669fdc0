// After locking all that is and will be mapped, a fresh mapping is resident without being touched.
// needs: root
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void)
{
    unsigned char core[64] = { 0 };
    int resident = 0;
    printf("locked: %s\n", mlockall(MCL_CURRENT | MCL_FUTURE) ? strerror(errno) : "done");
    char *map = mmap(0, 64 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mincore(map, 64 * 4096, core);
    for (int i = 0; i < 64; i++)
        resident += core[i] & 1;
    printf("resident %d of 64\n", resident);
    munlockall();
    map = mmap(0, 64 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mincore(map, 64 * 4096, core);
    resident = 0;
    for (int i = 0; i < 64; i++)
        resident += core[i] & 1;
    printf("unlocked: resident %d of 64\n", resident);
}
