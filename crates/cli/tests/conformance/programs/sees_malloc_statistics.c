// The allocator's statistics grow and shrink with what the program has, as glibc's do, and its settings are taken.
// flags: -fno-builtin
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
    void *blocks[100];
    char *text = NULL;
    size_t length = 0;
    struct mallinfo2 before = mallinfo2();
    for (int i = 0; i < 100; i++)
        blocks[i] = malloc(10000);
    void *large = malloc(4 << 20);
    struct mallinfo2 between = mallinfo2();
    for (int i = 0; i < 100; i++)
        free(blocks[i]);
    free(large);
    struct mallinfo2 after = mallinfo2();
    printf("grew: %d, shrank: %d, large one mapped: %d\n", between.uordblks - before.uordblks >= 1000000,
           between.uordblks - after.uordblks >= 1000000, between.hblkhd - before.hblkhd >= 4 << 20);
    FILE *memory = open_memstream(&text, &length);
    printf("info: %d, ", malloc_info(0, memory));
    fclose(memory);
    printf("xml: %d\n", !strncmp(text, "<malloc", 7));
    printf("settings: %d, ", mallopt(M_MMAP_THRESHOLD, 1 << 20));
    large = malloc(500000);
    printf("below the threshold not mapped: %d\n", mallinfo2().hblks == before.hblks);
    free(large);
    malloc_trim(0);
}
