// Allocating and freeing leave errno as it was.
// flags: -fno-builtin
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    int changed = 0;
    for (size_t size = 1; size < 3000000; size = size * 2 + 7) {
        errno = 4711;
        char *volatile block = malloc(size);
        changed += errno != 4711;
        free(block);
        changed += errno != 4711;
        block = calloc(1, size);
        block = realloc(block, size + size / 3);
        changed += errno != 4711;
        free(block);
        changed += errno != 4711;
    }
    errno = 4711;
    free(NULL);
    printf("changed %d\n", changed + (errno != 4711));
}
