// Writing to a pipe without reader fails with EPIPE while SIGPIPE is ignored, and kills when it is not.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
    int ends[2];
    pipe(ends);
    close(ends[0]);
    signal(SIGPIPE, SIG_IGN);
    ssize_t count = write(ends[1], "x", 1);
    printf("write: %zd, %s\n", count, strerror(errno));
    fflush(stdout);
    signal(SIGPIPE, SIG_DFL);
    write(ends[1], "x", 1);
    puts("after");
}
