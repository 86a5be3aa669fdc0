// Returning from main ends the program with that code, runs its handlers and writes what was still buffered.
#include <stdio.h>
#include <stdlib.h>

static void bye(void)
{
    printf("handler\n");
}

__attribute__((destructor)) static void last(void)
{
    printf("destructor\n");
}

int main(void)
{
    atexit(bye);
    printf("buffered without an end of line, ");
    return 7;
}
