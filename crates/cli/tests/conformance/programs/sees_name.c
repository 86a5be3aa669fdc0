// The kernel's name of the process is the file's, as /proc/self/comm, stat and status tell it.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char expected[32] = "", comm[64] = "", line[512] = "";
    snprintf(expected, 16, "%s", strrchr(argv[0], '/') + 1);
    FILE *file = fopen("/proc/self/comm", "r");
    fgets(comm, sizeof comm, file);
    comm[strcspn(comm, "\n")] = 0;
    fclose(file);
    file = fopen("/proc/self/stat", "r");
    fgets(line, sizeof line, file);
    printf("comm right: %d, stat right: %d\n", !strcmp(comm, expected), strstr(line, expected) != 0);
}
