// Growing a block beyond all memory is refused, and the block stays as it was, whether it is small, large or mapped.
// flags: -fno-builtin
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
    for (size_t size = 10; size < 3000000; size *= 40) {
        char *block = malloc(size);
        memset(block, 'b', size);
        errno = 0;
        void *volatile refused = realloc(block, PTRDIFF_MAX);
        printf("%zu: %s, %s, still there: %d\n", size, refused ? "done" : "refused", strerror(errno),
               block[0] == 'b' && block[size - 1] == 'b');
        free(block);
    }
}
