// The stack's limit is kept over exec, holds as much as it says, and gives new threads stacks of its size.
#include <alloca.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static __attribute__((noinline)) int use(size_t bytes)
{
    volatile char *room = alloca(bytes);
    int sum = 0;
    for (size_t i = 0; i < bytes; i += 1024)
        room[i] = i >> 10;
    for (size_t i = 0; i < bytes; i += 1024)
        sum += room[i];
    return sum;
}

int main(int argc, char **argv)
{
    struct rlimit limit;
    pthread_attr_t attributes;
    size_t size = 0;
    alarm(60);
    if (argc == 1) {
        struct rlimit now;
        getrlimit(RLIMIT_STACK, &now);
        setrlimit(RLIMIT_STACK, &(struct rlimit){ 3 << 20, now.rlim_max });
        execl(argv[0], argv[0], "again", NULL);
    }
    getrlimit(RLIMIT_STACK, &limit);
    pthread_attr_init(&attributes);
    pthread_attr_getstacksize(&attributes, &size);
    printf("limit %ld KiB, threads %zu KiB, used %d\n", (long)limit.rlim_cur >> 10, size >> 10, use(2600 << 10));
}
