// quick_exit runs its own handlers from last to first, none of atexit, and writes nothing that was buffered.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void one(void) { write(1, "quick one\n", 10); }
static void two(void) { write(1, "quick two\n", 10); }
static void never(void) { write(1, "atexit ran\n", 11); }

int main(void)
{
    static char buffer[4096];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    printf("never seen\n");
    atexit(never);
    at_quick_exit(one);
    at_quick_exit(two);
    quick_exit(14);
}
