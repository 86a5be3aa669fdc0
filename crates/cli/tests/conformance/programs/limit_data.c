// With 32 MiB of data allowed, allocating blocks of 1 MiB ends with ENOMEM, and after freeing them there is room again.
// flags: -fno-builtin
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

int main(void)
{
    static void *volatile blocks[64];
    int count = 0;
    setrlimit(RLIMIT_DATA, &(struct rlimit){ 32 << 20, 32 << 20 });
    errno = 0;
    while (count < 64 && (blocks[count] = malloc(1 << 20)))
        count++;
    int error = errno;
    for (int i = 0; i < count; i++)
        free(blocks[i]);
    printf("between 16 and 31 blocks: %d, then %s\n", count >= 16 && count < 32, strerror(error));
    blocks[0] = malloc(8 << 20);
    printf("again: %s\n", blocks[0] ? "done" : "refused");
}
