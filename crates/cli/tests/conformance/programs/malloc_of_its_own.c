// A program with a malloc of its own has that one used, also by the C library.
// flags: -fno-builtin
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char arena[8 << 20] __attribute__((aligned(16)));
static size_t used;
static int calls;

void *malloc(size_t size)
{
    size_t need = (size + 31) & ~15UL, at = __atomic_fetch_add(&used, need, __ATOMIC_RELAXED);
    if (at + need > sizeof arena) {
        errno = ENOMEM;
        return NULL;
    }
    calls++;
    *(size_t *)(arena + at) = size;
    return arena + at + 16;
}

void free(void *block)
{
    if (block && ((char *)block < arena || (char *)block >= arena + sizeof arena))
        _exit(99);
}

void *calloc(size_t count, size_t size)
{
    return malloc(count * size); /* fresh memory of the arena is zero */
}

void *realloc(void *block, size_t size)
{
    void *new = malloc(size);
    if (block && new)
        memcpy(new, block, size < ((size_t *)block)[-2] ? size : ((size_t *)block)[-2]);
    return new;
}

int main(void)
{
    char *text = NULL, *volatile copy = strdup("duplicated");
    int before = calls, length = asprintf(&text, "%s and printed", copy);
    printf("%s, %d, own: %d %d, more calls: %d\n", text, length, copy > arena && copy < arena + sizeof arena,
           text > arena && text < arena + sizeof arena, calls > before);
    FILE *file = fopen("/dev/null", "r");
    printf("file: %d\n", (char *)file > arena && (char *)file < arena + sizeof arena);
    fclose(file);
}
