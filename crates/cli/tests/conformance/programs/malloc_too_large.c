// Requests that no memory can hold are refused with ENOMEM by every function, and small ones go on.
// flags: -fno-builtin
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say(const char *what, void *volatile block)
{
    printf("%s: %s, %s\n", what, block ? "done" : "refused", strerror(errno));
    errno = 0;
}

int main(void)
{
    volatile size_t most = SIZE_MAX, half = PTRDIFF_MAX, space = 1UL << 50;
    void *small = malloc(10);
    errno = 0;
    say("malloc of the largest number", malloc(most));
    say("malloc of 16 less", malloc(most - 16));
    say("malloc of half", malloc(half));
    say("malloc of a pebibyte", malloc(space));
    say("calloc", calloc(space, 4));
    say("calloc that overflows", calloc(1UL << 33, 1UL << 33));
    say("realloc", realloc(small, most));
    say("reallocarray that overflows", reallocarray(small, 1UL << 33, 1UL << 33));
    say("reallocarray", reallocarray(NULL, 10, 20));
    say("aligned_alloc", aligned_alloc(4096, space));
    say("memalign", memalign(64, most));
    say("pvalloc", pvalloc(most));
    say("small", malloc(100));
}
