// The environment that the kernel gave (/proc/self/environ) has no variables but those that main finds.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
    static char text[262144];
    int differing = 0, count = 0, found = 0;
    FILE *file = fopen("/proc/self/environ", "r");
    size_t length = fread(text, 1, sizeof text - 1, file);
    for (char *at = text; at < text + length; at += strlen(at) + 1, count++)
        differing += !environ[count] || strcmp(at, environ[count]);
    while (environ[found])
        found++;
    printf("in number the same: %d, differing: %d\n", count == found, differing);
}
