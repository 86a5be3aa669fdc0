// calloc gives zeroes, also where used blocks were freed before, and refuses what overflows.
// flags: -fno-builtin
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int nonzero(const unsigned char *block, size_t size)
{
    int count = 0;
    for (size_t i = 0; i < size; i++)
        count += block[i] != 0;
    return count;
}

int main(void)
{
    size_t sizes[] = { 1, 24, 100, 1000, 4096, 30000, 131072, 200000, 1 << 20, 2 << 20 };
    int wrong = 0;
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 10; i++) {
            unsigned char *dirty[4], *clean[4];
            int count = sizes[i] < 1 << 20 ? 4 : 1;
            for (int j = 0; j < count; j++)
                memset(dirty[j] = malloc(sizes[i]), 0xaa, sizes[i]);
            for (int j = 0; j < count; j++)
                free(dirty[j]);
            for (int j = 0; j < count; j++)
                wrong += nonzero(clean[j] = calloc(j + 1, (sizes[i] + j) / (j + 1)), sizes[i] / (j + 1) * (j + 1));
            for (int j = 0; j < count; j++)
                free(clean[j]);
        }
    printf("bytes not zero: %d\n", wrong);
    errno = 0;
    void *volatile a = calloc(SIZE_MAX / 2, 3);
    printf("overflow: %s, %s\n", a ? "done" : "refused", strerror(errno));
    void *volatile b = calloc(0, 8), *volatile c = calloc(8, 0);
    printf("of nothing: %d\n", b && c && b != c);
}
