// The kernel tells the program's own command line, folder and root as they are.
// args: first "second one" ""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static char text[8192], link[4096], folder[4096];
    char *at = text;
    int right = 0;
    FILE *file = fopen("/proc/self/cmdline", "r");
    size_t length = fread(text, 1, sizeof text - 1, file);
    for (int i = 0; i < argc && at < text + length; i++, at += strlen(at) + 1)
        right += !strcmp(at, argv[i]);
    printf("right %d of %d, all: %d\n", right, argc, at == text + length);
    readlink("/proc/self/cwd", link, sizeof link - 1);
    printf("folder: %d, ", !strcmp(link, getcwd(folder, sizeof folder)));
    memset(link, 0, sizeof link);
    readlink("/proc/self/root", link, sizeof link - 1);
    printf("root: %s, ", link);
    readlink("/proc/self", link, sizeof link - 1);
    printf("itself: %d\n", atoi(link) == getpid());
}
