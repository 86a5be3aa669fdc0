// Prints which variables that tools use are there, in the environment at the start and after exec with one of its own.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void show(const char *when)
{
    const char *marks[] = { "LD_", "VALGRIND", "GLIBC_TUNABLES", "QEMU", "LOOKASIDE", "GLIBCXX", "MALLOC_" };
    printf("%s: LD_PRELOAD %s;", when, getenv("LD_PRELOAD") ? "present" : "not present");
    for (char **e = environ; *e; e++)
        for (int i = 0; i < sizeof marks / sizeof *marks; i++)
            if (!strncmp(*e, marks[i], strlen(marks[i])))
                printf(" %.*s", (int)strcspn(*e, "="), *e);
    printf("\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    alarm(60);
    if (argc == 1) {
        show("at start");
        execle(argv[0], argv[0], "again", NULL, (char *[]){ "A=1", "B=2", NULL });
    }
    show("after exec");
    for (char **e = environ; *e; e++)
        printf("%.*s ", (int)strcspn(*e, "="), *e);
    printf("\n");
}
