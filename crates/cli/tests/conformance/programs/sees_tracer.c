// Nobody traces the program, as /proc/self/status tells, so that its parent could.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static void tracer(const char *who)
{
    char line[256];
    int pid = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status))
        sscanf(line, "TracerPid: %d", &pid);
    fclose(status);
    printf("%s is traced: %s\n", who, pid ? "yes" : "no");
    fflush(stdout);
}

int main(void)
{
    alarm(60);
    tracer("the program");
    if (fork() == 0) {
        tracer("its child");
        int traced = ptrace(PTRACE_TRACEME, 0, 0, 0);
        printf("may be traced: %s\n", traced ? strerror(errno) : "yes");
        fflush(stdout);
        _exit(0);
    }
    wait(0);
}
