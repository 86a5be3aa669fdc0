// realloc keeps the contents while growing and shrinking, from nothing, and to nothing as glibc does it.
// flags: -fno-builtin
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    size_t size = 0;
    int wrong = 0, steps = 0;
    unsigned char *block = NULL, *neighbour[40];
    for (size_t next = 1; next < 1500000; next = next * 3 / 2 + 1, steps++) {
        neighbour[steps % 40] = malloc(next % 5000);
        block = realloc(block, next);
        for (size_t i = 0; i < size; i += 1 + size / 64)
            wrong += block[i] != (unsigned char)(i * 13);
        size = next;
        for (size_t i = 0; i < size; i++)
            block[i] = i * 13;
    }
    for (; size > 1; size = size * 2 / 5) {
        block = realloc(block, size);
        for (size_t i = 0; i < size; i += 1 + size / 64)
            wrong += block[i] != (unsigned char)(i * 13);
    }
    printf("steps %d, wrong %d\n", steps, wrong);
    printf("to nothing: %s\n", realloc(block, 0) ? "a block" : "freed");
}
