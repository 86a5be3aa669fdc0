// _exit runs no handlers and drops what is buffered.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void bye(void)
{
    write(1, "handler ran\n", 12);
}

__attribute__((destructor)) static void last(void)
{
    write(1, "destructor ran\n", 15);
}

int main(void)
{
    static char buffer[4096];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    atexit(bye);
    printf("never seen\n");
    write(1, "seen\n", 5);
    _exit(12);
}
