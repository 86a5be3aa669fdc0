// Variables keep their order and values over exec, and changes arrive (those of tools are left out).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    alarm(60);
    if (argc > 1) {
        for (char **e = environ; *e; e++)
            if (strncmp(*e, "LD_", 3) && strncmp(*e, "VALGRIND", 8))
                printf("%s\n", *e);
        if (strcmp(argv[1], "first"))
            return 0;
        fflush(stdout);
        setenv("B", "changed", 1);
        setenv("B", "not again", 0);
        putenv("E=new");
        unsetenv("A");
        execl(argv[0], argv[0], "second", NULL);
    }
    execle(argv[0], argv[0], "first", NULL, (char *[]){ "Z=last name first", "A=1", "B=2", "A=twice",
                                                             "no equals sign", "=x", NULL });
}
