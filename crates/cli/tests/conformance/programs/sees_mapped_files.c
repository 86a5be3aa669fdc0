// Prints the names of all files that are mapped, and counts the executable mappings without one.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    return strcmp(*(char **)a, *(char **)b);
}

int main(int argc, char **argv)
{
    char line[4352], rights[8], path[4096], *names[256];
    int count = 0, nameless = 0, stack = 0;
    unsigned long start, end;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps)) {
        *path = 0;
        sscanf(line, "%lx-%lx %7s %*x %*x:%*x %*u %4095[^\n]", &start, &end, rights, path);
        stack += !strcmp(path, "[stack]") && start < (unsigned long)&line && (unsigned long)&line < end;
        nameless += rights[2] == 'x' && !*path;
        if (*path == '/' && count < 256)
            names[count++] = strdup(strrchr(path, '/'));
    }
    qsort(names, count, sizeof *names, compare);
    for (int i = 0; i < count; i++)
        if (!i || strcmp(names[i], names[i - 1]))
            printf("%s\n", names[i]);
    printf("executable without a name: %d, own stack so named: %d\n", nameless, stack);
}
