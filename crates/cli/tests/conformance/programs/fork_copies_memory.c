// After fork parent and child write to their own copies of private memory and to one shared, over mebibytes of each.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 6 << 20, PAGE = 4096 };

static unsigned sum(const char *at)
{
    unsigned total = 0;
    for (int i = 0; i < BYTES; i += PAGE / 2)
        total = total * 31 + (unsigned char)at[i];
    return total;
}

int main(void)
{
    alarm(60);
    char *mine = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *shared = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < BYTES; i += PAGE)
        mine[i] = shared[i] = i / PAGE;
    printf("before: %u %u\n", sum(mine), sum(shared));
    fflush(stdout);
    pid_t child = fork();
    for (int i = child ? 0 : PAGE; i < BYTES; i += 2 * PAGE) {
        mine[i] += child ? 1 : 100;
        shared[i] += child ? 1 : 100;
    }
    if (!child) {
        printf("child's own: %u\n", sum(mine));
        fflush(stdout);
        _exit(0);
    }
    wait(0);
    printf("parent's own: %u, shared by both: %u\n", sum(mine), sum(shared));
}
