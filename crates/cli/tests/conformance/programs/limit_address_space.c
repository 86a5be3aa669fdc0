// With 1 GiB of address space a mapping of 16 MiB succeeds, one of 1 GiB and a malloc of 2 GiB fail.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

static void try(size_t bytes)
{
    void *map = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("map %zu MiB: %s\n", bytes >> 20, map == MAP_FAILED ? strerror(errno) : "done");
}

int main(void)
{
    struct rlimit limit;
    printf("set: %d\n", setrlimit(RLIMIT_AS, &(struct rlimit){ 1 << 30, 1 << 30 }));
    getrlimit(RLIMIT_AS, &limit);
    printf("reads back: %d\n", limit.rlim_cur == 1 << 30 && limit.rlim_max == 1 << 30);
    try(16 << 20);
    try(1UL << 30);
    errno = 0;
    void *volatile block = malloc(2UL << 30);
    printf("malloc: %s, %s\n", block ? "done" : "refused", strerror(errno));
    void *volatile small = malloc(1 << 20);
    printf("small: %s\n", small ? "done" : "refused");
}
