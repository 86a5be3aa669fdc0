// A program may run itself by /proc/self/exe, and that link points to its own file.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char target[PATH_MAX] = "", real[PATH_MAX] = "";
    struct stat by_link, by_name;
    alarm(60);
    readlink("/proc/self/exe", target, sizeof target - 1);
    realpath(argc > 1 ? argv[1] : argv[0], real);
    stat("/proc/self/exe", &by_link);
    stat(real, &by_name);
    printf("link right: %d, same file: %d\n", !strcmp(target, real),
           by_link.st_ino == by_name.st_ino && by_link.st_dev == by_name.st_dev);
    if (argc > 1)
        return printf("run again as %s\n", argv[0]), 5;
    fflush(stdout);
    execl("/proc/self/exe", "again", argv[0], NULL);
    return 1;
}
