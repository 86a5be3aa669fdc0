// With four descriptors allowed one file can be opened and no more, and a program can still be run.
// flags: -fno-builtin
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct rlimit limit;
    alarm(60);
    if (argc == 1) {
        close_range(3, ~0U, 0);
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 4, 4 });
    }
    getrlimit(RLIMIT_NOFILE, &limit);
    int first = open("/dev/null", O_RDONLY);
    printf("limit %ld, opened %d, ", (long)limit.rlim_cur, first);
    int second = open("/dev/null", O_RDONLY);
    printf("then %d, %s; ", second, strerror(errno));
    int high = dup2(0, 4);
    printf("dup2 to 4: %d, %s\n", high, strerror(errno));
    fflush(stdout);
    close(first);
    free(malloc(1 << 20));
    if (argc == 1)
        execl(argv[0], argv[0], "again", NULL);
}
