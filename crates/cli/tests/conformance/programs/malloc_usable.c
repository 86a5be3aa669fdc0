// Each block may be used as far as malloc_usable_size says, which is at least what was asked for.
// flags: -fno-builtin
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
    enum { COUNT = 400 };
    unsigned char *blocks[COUNT];
    int too_small = 0, wrong = 0;
    for (int i = 0; i < COUNT; i++) {
        size_t size = i < 200 ? i : (i - 199) * 997;
        blocks[i] = malloc(size);
        size_t usable = malloc_usable_size(blocks[i]);
        too_small += usable < size;
        memset(blocks[i], i, usable);
    }
    for (int i = 0; i < COUNT; i++) {
        size_t usable = malloc_usable_size(blocks[i]);
        for (size_t j = 0; j < usable; j += 1 + usable / 32)
            wrong += blocks[i][j] != (unsigned char)i;
        wrong += usable && blocks[i][usable - 1] != (unsigned char)i;
        free(blocks[i]);
    }
    printf("too small %d, wrong %d, of none %zu\n", too_small, wrong, malloc_usable_size(NULL));
}
