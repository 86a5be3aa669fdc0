// Prints the limits that the program starts with, but for descriptors, by getrlimit and prlimit, which must agree.
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

int main(void)
{
    for (int i = 0; i < RLIMIT_NLIMITS; i++) {
        if (i == RLIMIT_NOFILE)
            continue;
        struct rlimit limit = { 0, 0 }, other = { 1, 1 };
        getrlimit(i, &limit);
        prlimit(getpid(), i, NULL, &other);
        printf("%d: %ld of %ld, agree: %d\n", i, (long)limit.rlim_cur, (long)limit.rlim_max,
               limit.rlim_cur == other.rlim_cur && limit.rlim_max == other.rlim_max);
    }
}
