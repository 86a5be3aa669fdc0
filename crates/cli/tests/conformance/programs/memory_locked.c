// Locked memory is resident at once and counted as locked, and is not when unlocked.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 256 << 10 };

static long locked(void)
{
    char line[256];
    long kib = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status))
        sscanf(line, "VmLck: %ld", &kib);
    fclose(status);
    return kib;
}

int main(void)
{
    unsigned char core[BYTES / 4096] = { 0 };
    int resident = 0;
    long before = locked();
    char *map = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("locked before: %ld KiB, mlock: %s, ", before, mlock(map, BYTES) ? strerror(errno) : "done");
    mincore(map, BYTES, core);
    for (int i = 0; i < BYTES / 4096; i++)
        resident += core[i] & 1;
    printf("resident %d, locked %ld KiB, ", resident, locked());
    printf("munlock %d, ", munlock(map, BYTES / 2));
    printf("locked %ld KiB\n", locked());
    printf("advice to drop: %s\n", madvise(map + BYTES / 2, 4096, MADV_DONTNEED) ? strerror(errno) : "done");
}
