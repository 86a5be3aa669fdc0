// Memory advised for huge pages holds what it held through protection, partial unmapping, fork and dropping.
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HUGE = 2 << 20, BYTES = 5 * HUGE };

static unsigned sum(const char *from, const char *to)
{
    unsigned total = 1;
    for (; from < to; from += 1024)
        total = total * 31 + *from;
    return total;
}

int main(void)
{
    alarm(60);
    char *map = mmap(0, BYTES + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    map = (char *)(((uintptr_t)map + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
    printf("advice: %d\n", madvise(map, BYTES, MADV_HUGEPAGE));
    for (int i = 0; i < BYTES; i += 512)
        map[i] = i / 512 * 7;
    usleep(30000);
    printf("written: %u\n", sum(map, map + BYTES));
    mprotect(map + HUGE + 4096, 4096, PROT_READ);
    munmap(map + 3 * HUGE + 8192, 4096);
    madvise(map + 4 * HUGE + 12288, 4096, MADV_DONTNEED);
    fflush(stdout);
    pid_t child = fork();
    if (child)
        wait(0);
    else
        memset(map + 2 * HUGE, 9, HUGE);
    usleep(15000);
    printf("%s: before %u, ", child ? "parent" : "child", sum(map, map + 3 * HUGE + 8192));
    printf("behind %u\n", sum(map + 3 * HUGE + 12288, map + BYTES));
    fflush(stdout);
    if (!child)
        _exit(0);
    munmap(map, HUGE);
    void *again = mmap(map, HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    printf("mapped again, zero: %d\n", sum(again, map + HUGE) == sum(memset(again, 0, HUGE), map + HUGE));
}
