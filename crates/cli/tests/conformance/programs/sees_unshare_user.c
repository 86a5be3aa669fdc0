// A new user namespace can be made or is refused (a program of more than one thread may not).
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    printf("unshare: %s\n", unshare(CLONE_NEWUSER) ? strerror(errno) : "done");
}
