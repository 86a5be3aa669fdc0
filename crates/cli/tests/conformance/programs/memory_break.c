// The break grows and shrinks in one piece, its fresh memory is zero, and it does not move by itself.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

int main(void)
{
    static char buffer[4096];
    int wrong = 0;
    setvbuf(stdout, buffer, _IOLBF, sizeof buffer); /* or printf allocates one, which may move the break */
    char *start = sbrk(0);
    for (int i = 0; i < 64; i++) {
        char *piece = sbrk(20000);
        wrong += piece != start + i * 20000L;
        for (int j = 0; j < 20000; j++)
            wrong += piece[j] != 0;
        memset(piece, i + 1, 20000);
    }
    usleep(20000);
    wrong += (char *)sbrk(0) != start + 64 * 20000L;
    for (int i = 0; i < 64; i++)
        wrong += start[i * 20000L + 19999] != i + 1;
    printf("wrong %d, ", wrong);
    printf("back: %d, ", brk(start));
    printf("break at start again: %d\n", sbrk(0) == start);
    char *again = sbrk(100000);
    printf("same place: %d, a page further zero: %d\n", again == start, again[50000] == 0);
    setrlimit(RLIMIT_DATA, &(struct rlimit){ 1 << 20, 1 << 20 });
    printf("beyond the limit: %s\n", sbrk(64 << 20) == (void *)-1 ? strerror(errno) : "done");
}
