// A reservation of 1 GiB holds what is written here and there, takes little memory, and reads as zero elsewhere.
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { GIB = 1 << 30, STEP = GIB / 64 };

int main(void)
{
    int wrong = 0;
    char *map = mmap(0, GIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
        return 1;
    madvise(map, GIB, MADV_NOHUGEPAGE);
    for (long i = 0; i < 64; i++)
        map[i * STEP + i * 100] = i + 1;
    usleep(30000);
    for (long i = 0; i < 64; i++)
        wrong += map[i * STEP + i * 100] != i + 1 || map[i * STEP + STEP / 2] != 0;
    long resident = 0, ignored;
    FILE *file = fopen("/proc/self/statm", "r");
    fscanf(file, "%ld %ld", &ignored, &resident);
    printf("wrong %d, less than 512 MiB resident: %d, unmapped: %d\n", wrong, resident < 131072, munmap(map, GIB));
}
