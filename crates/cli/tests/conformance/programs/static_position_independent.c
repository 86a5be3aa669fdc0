// A static program that may lie anywhere finds its own addresses, runs itself and uses memory.
// flags: -static-pie
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int number = 5;
static int *const pointer = &number;
static const char *const names[] = { "first", "second" };

int main(int argc, char **argv)
{
    alarm(60);
    char *block = malloc(100000);
    strcpy(block + 50000, names[argc > 1]);
    printf("%s, pointer right: %d, %d\n", block + 50000, pointer == &number, *pointer);
    fflush(stdout);
    if (argc == 1)
        execl(argv[0], argv[0], "again", NULL);
    return 4;
}
