// What stands in the buffers of several files is in them after exit, and a temporary file is gone.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(void)
{
    char name[16];
    FILE *hidden = tmpfile();
    fprintf(hidden, "nobody sees this");
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "left%d", i);
        FILE *file = fopen(name, "w");
        for (int line = 0; line < 40 * i; line++)
            fprintf(file, "line %d of file %d\n", line, i);
    }
    fputs("to stderr\n", stderr);
    fputs("to stdout", stdout);
    exit(0);
}
