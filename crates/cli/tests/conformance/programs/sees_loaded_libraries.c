// Lists the objects that the linker has loaded, in its order, as dl_iterate_phdr gives them.
#include <link.h>
#include <stdio.h>
#include <string.h>

static int show(struct dl_phdr_info *info, size_t size, void *count)
{
    const char *name = strrchr(info->dlpi_name, '/');
    ++*(int *)count;
    printf("%s\n", name ? name + 1 : *info->dlpi_name ? info->dlpi_name : "the program");
    return 0;
}

int main(void)
{
    int count = 0;
    dl_iterate_phdr(show, &count);
    printf("%d objects\n", count);
}
