// Prints which signals the kernel has as caught, ignored and blocked for the process (a tool's own are among them).
#include <signal.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status))
        if (!strncmp(line, "Sig", 3) && line[3] != 'Q' || !strncmp(line, "ShdPnd", 6))
            fputs(line, stdout);
    struct sigaction act;
    printf("64: %s\n", sigaction(64, NULL, &act) ? "refused" : act.sa_handler == SIG_DFL ? "default" : "not default");
}
