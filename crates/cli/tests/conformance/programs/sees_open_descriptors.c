// Counts the open descriptors that /proc/self/fd lists, but for the folder's own.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    int count = 0, above = 0;
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(folder)) {
            count++;
            above += atoi(entry->d_name) > 2;
        }
    printf("open: %d, above 2: %d\n", count, above);
}
