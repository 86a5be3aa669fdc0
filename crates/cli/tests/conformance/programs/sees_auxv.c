// Prints which entries the auxiliary vector has, and those values that are the same in each run.
#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char **end = environ;
    while (*end)
        end++;
    for (Elf64_auxv_t *entry = (Elf64_auxv_t *)(end + 1); entry->a_type != AT_NULL; entry++) {
        printf("%lu", entry->a_type);
        if (entry->a_type == AT_PAGESZ || entry->a_type == AT_CLKTCK || entry->a_type == AT_PHENT ||
            entry->a_type == AT_PHNUM || entry->a_type == AT_SECURE || entry->a_type == AT_FLAGS)
            printf(" = %lu", entry->a_un.a_val);
        if (entry->a_type == AT_HWCAP || entry->a_type == AT_HWCAP2 || entry->a_type == AT_MINSIGSTKSZ)
            printf(" = %lx", entry->a_un.a_val);
        if (entry->a_type == AT_PLATFORM)
            printf(" = %s", (char *)entry->a_un.a_val);
        if (entry->a_type == AT_EXECFN)
            printf(", is the name: %d", !strcmp((char *)entry->a_un.a_val, argv[0]));
        printf("\n");
    }
}
