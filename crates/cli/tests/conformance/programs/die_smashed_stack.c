// Writing over the end of an array on the stack is found by the compiler's guard, which says so and aborts.
// flags: -fstack-protector-all
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static __attribute__((noinline)) void overflow(int length)
{
    char text[16];
    memset(text, 'x', length);
    printf("%.4s\n", text);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    overflow(16);
    overflow(40 + argc * 8);
    puts("not found");
}
