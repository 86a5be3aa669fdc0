// abort runs the program's handler for SIGABRT, and kills when that returns; handlers of exit don't run.
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static void on_abort(int number)
{
    write(1, "SIGABRT caught\n", 15);
}

static void never(void)
{
    write(1, "atexit ran\n", 11);
}

int main(void)
{
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    atexit(never);
    signal(SIGABRT, on_abort);
    abort();
}
