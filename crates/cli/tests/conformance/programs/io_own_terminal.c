// A pseudo-terminal made by the program is its child's controlling terminal: echo, lines, size, and the interrupt key.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static char all[512];

static void read_until(int terminal, const char *end)
{
    size_t length = strlen(all);
    for (ssize_t n; !strstr(all, end) && (n = read(terminal, all + length, sizeof all - 1 - length)) > 0; length += n)
        all[length + n] = 0;
}

int main(void)
{
    int status = 0, master = posix_openpt(O_RDWR | O_NOCTTY);
    char line[64] = "";
    struct winsize size = { 40, 123 };
    alarm(60);
    grantpt(master);
    unlockpt(master);
    ioctl(master, TIOCSWINSZ, &size);
    pid_t child = fork();
    if (!child) {
        alarm(60);
        signal(SIGINT, SIG_DFL);
        setsid();
        int slave = open(ptsname(master), O_RDWR);
        close(master);
        ioctl(slave, TIOCSCTTY, 0);
        dup2(slave, 0);
        ioctl(0, TIOCGWINSZ, &size);
        dprintf(slave, "terminal %d, %dx%d, group %d;", isatty(0), size.ws_row, size.ws_col, tcgetpgrp(0) == getpgrp());
        line[read(0, line, sizeof line - 1) - 1] = 0;
        dprintf(slave, "got %s;", line);
        for (;;)
            pause();
    }
    read_until(master, ";");
    write(master, "typeX\177d\n", 8);
    read_until(master, "got typed;");
    write(master, "\003", 1);
    waitpid(child, &status, 0);
    for (char *at = all; *at; at++)
        printf(*at >= ' ' && *at < 127 ? "%c" : "\\%02x", (unsigned char)*at);
    printf("\nkilled by %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}
