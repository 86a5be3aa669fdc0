// Aligned blocks are aligned as asked and can be grown and freed; wrong alignments are refused.
// flags: -fno-builtin
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
    int wrong = 0;
    void *blocks[200], *kept = (void *)77;
    int count = 0;
    for (size_t align = 16; align <= 65536; align *= 2)
        for (size_t size = 1; size < 100000; size = size * 10 + 3) {
            char *block = count % 3 ? aligned_alloc(align, size) : memalign(align, size);
            wrong += (uintptr_t)block % align != 0;
            memset(block, 3, size);
            wrong += malloc_usable_size(block) < size;
            blocks[count++] = block;
        }
    for (int i = 0; i < count; i += 2)
        blocks[i] = realloc(blocks[i], 5000);
    for (int i = 0; i < count; i++) {
        wrong += *(char *)blocks[i] != 3;
        free(blocks[i]);
    }
    void *page = valloc(100), *pages = pvalloc(100);
    wrong += (uintptr_t)page % 4096 != 0 || (uintptr_t)pages % 4096 != 0 || malloc_usable_size(pages) < 4096;
    printf("blocks %d, wrong %d\n", count, wrong);
    printf("posix_memalign: 3 %s, ", strerror(posix_memalign(&kept, 3, 8)));
    printf("4 %s, ", strerror(posix_memalign(&kept, 4, 8)));
    printf("24 %s, kept %d, ", strerror(posix_memalign(&kept, 24, 8)), kept == (void *)77);
    printf("too large %s, ", strerror(posix_memalign(&kept, 64, PTRDIFF_MAX)));
    printf("64 %s, ", strerror(posix_memalign(&kept, 64, 1000)));
    printf("aligned %d\n", (uintptr_t)kept % 64 == 0);
    free(kept);
    free(page);
    free(pages);
    errno = 0;
    void *volatile odd = aligned_alloc(1UL << 63, 16);
    printf("huge alignment: %s, %s\n", odd ? "done" : "refused", strerror(errno));
}
