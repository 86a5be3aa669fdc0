// A failing assertion names the program, the place and the condition, and aborts.
#include <assert.h>
#include <stdio.h>
#include <sys/resource.h>

int main(int argc, char **argv)
{
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    printf("in the buffer, and lost");
    assert(argc == 1);
    assert(argc > 1 && "no arguments");
}
