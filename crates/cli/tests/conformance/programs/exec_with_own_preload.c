// A library that the program has preloaded into its child is there, and one that is missing is complained about.
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int find(struct dl_phdr_info *info, size_t size, void *found)
{
    *(int *)found |= strstr(info->dlpi_name, "libm.so.6") != 0;
    return 0;
}

int main(int argc, char **argv)
{
    const char *values[] = { "libm.so.6", "/no/such/library.so" };
    int found = 0;
    alarm(60);
    if (argc > 1) {
        const char *value = getenv("LD_PRELOAD");
        dl_iterate_phdr(find, &found);
        printf("variable there: %d, loaded: %d\n", value && strstr(value, argv[1]) != 0, found);
        return 0;
    }
    for (int i = 0; i < 2; i++) {
        if (fork() == 0) {
            setenv("LD_PRELOAD", values[i], 1);
            execl(argv[0], argv[0], values[i], NULL);
        }
        wait(0);
    }
}
