// Writing through a bad pointer kills the program with SIGSEGV after what it wrote before.
#include <stdio.h>
#include <sys/resource.h>

int main(void)
{
    volatile int *nowhere = (int *)8;
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    printf("before\n");
    fflush(stdout);
    *nowhere = 1;
    printf("after\n");
}
