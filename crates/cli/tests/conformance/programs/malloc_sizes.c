// Blocks of all sizes hold what is written to them, don't overlap, and can be freed in any order.
// flags: -fno-builtin
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 600 };
static unsigned char *blocks[COUNT];
static size_t sizes[COUNT];

int main(void)
{
    unsigned random = 12345;
    int wrong = 0, unaligned = 0;
    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < COUNT; i++) {
            random = random * 1103515245 + 12345;
            if (blocks[i] && random >> 16 & 1)
                continue;
            for (size_t j = 0; blocks[i] && j < sizes[i]; j += 1 + sizes[i] / 16)
                wrong += blocks[i][j] != (unsigned char)i;
            free(blocks[i]);
            sizes[i] = i % 50 ? random >> 20 & (16 << i % 9) - 1 : random >> 13;
            blocks[i] = malloc(sizes[i]);
            unaligned += (uintptr_t)blocks[i] % 16 != 0;
            memset(blocks[i], i, sizes[i]);
        }
    }
    for (int i = COUNT - 1; i >= 0; i--) {
        for (size_t j = 0; j < sizes[i]; j += 1 + sizes[i] / 16)
            wrong += blocks[i][j] != (unsigned char)i;
        free(blocks[i]);
    }
    printf("wrong %d, not aligned to 16: %d\n", wrong, unaligned);
}
