// SIGTERM sent to itself kills by default.
#include <signal.h>
#include <stdio.h>

int main(void)
{
    puts("before");
    fflush(stdout);
    signal(SIGTERM, SIG_DFL);
    raise(SIGTERM);
    puts("after");
    return 1;
}
