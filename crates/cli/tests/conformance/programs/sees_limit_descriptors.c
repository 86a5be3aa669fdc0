// Prints how many descriptors the program may have (Valgrind keeps some for itself), and whether all sources agree.
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

int main(void)
{
    struct rlimit limit = { 0, 0 };
    char line[256];
    long soft = 0, hard = 0;
    getrlimit(RLIMIT_NOFILE, &limit);
    FILE *file = fopen("/proc/self/limits", "r");
    while (fgets(line, sizeof line, file))
        sscanf(line, "Max open files %ld %ld", &soft, &hard);
    printf("%ld of %ld, in /proc %ld of %ld\n", (long)limit.rlim_cur, (long)limit.rlim_max, soft, hard);
    printf("as sysconf: %d\n", sysconf(_SC_OPEN_MAX) == limit.rlim_cur);
}
