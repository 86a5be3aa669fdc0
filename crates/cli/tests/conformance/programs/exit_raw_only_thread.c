// A program of one thread that leaves by the raw call of that thread ends, with its code and without handlers.
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void bye(void)
{
    write(1, "handler ran\n", 12);
}

int main(void)
{
    alarm(60);
    atexit(bye);
    write(1, "leaving\n", 8);
    syscall(SYS_exit, 21);
}
