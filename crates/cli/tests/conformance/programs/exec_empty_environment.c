// A program may run itself with an empty environment, and with none at all (variables of tools are not counted).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int others = 0;
    alarm(60);
    for (char **e = environ; e && *e; e++)
        others += strncmp(*e, "LD_PRELOAD=", 11) && strncmp(*e, "VALGRIND", 8);
    if (argc == 1) {
        execle(argv[0], argv[0], "empty", NULL, (char *[]){ NULL });
    } else if (!strcmp(argv[1], "empty")) {
        printf("empty: %d variables, PATH %d\n", others, getenv("PATH") != 0);
        fflush(stdout);
        execve(argv[0], (char *[]){ argv[0], "none", NULL }, NULL);
    } else {
        printf("none: %d variables, HOME %d\n", others, getenv("HOME") != 0);
        return 6;
    }
}
