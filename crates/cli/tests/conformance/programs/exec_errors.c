// exec of what can't be run fails with the right error and leaves the program as it was.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void make(const char *name, const char *text, int mode)
{
    int file = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    write(file, text, strlen(text));
    fchmod(file, mode);
    close(file);
}

static void run(const char *name)
{
    char *arguments[] = { "x", NULL };
    execve(name, arguments, environ);
    printf("%.40s: %s\n", name, strerror(errno));
}

int main(void)
{
    static char long_name[5000];
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    memset(long_name, 'n', sizeof long_name - 1);
    make("text", "neither script nor program\n", 0755);
    make("empty", "", 0755);
    make("locked", "#!/bin/sh\necho ran\n", 0644);
    make("cut", "\177ELF", 0755);
    mkdir("folder", 0755);
    symlink("loop", "loop");
    run("missing");
    run("");
    run("./text");
    run("./empty");
    run("./locked");
    run("./cut");
    run("./folder");
    run("./text/inside");
    run("./loop");
    run(long_name);
    puts("still here");
}
