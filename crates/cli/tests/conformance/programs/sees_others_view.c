// Another process sees this one's command line, file and name as they are.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void look(pid_t pid, char **argv)
{
    char path[64], text[8192] = "", link[4096] = "", real[4096] = "";
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    readlink(path, link, sizeof link - 1);
    realpath(argv[0], real);
    printf("command line: %d, file: %d\n", !strcmp(text, argv[0]) && length == strlen(argv[0]) + 1, !strcmp(link, real));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    alarm(60);
    if (fork() == 0) {
        look(getppid(), argv);
        _exit(0);
    }
    wait(0);
}
