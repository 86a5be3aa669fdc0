// Scripts run by their first line, with its argument, their own path and the arguments given.
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void script(const char *name, const char *interpreter, const char *argument, const char *rest)
{
    FILE *file = fopen(name, "we");
    fprintf(file, "#!%s %s\n%s", interpreter, argument, rest);
    fchmod(fileno(file), 0755);
    fclose(file);
}

int main(int argc, char **argv)
{
    int status = 0;
    alarm(60);
    if (argc > 1) {
        for (int i = 1; i < argc; i++)
            printf("[%s]", argv[i]);
        printf("\n");
        return 10;
    }
    script("self", argv[0], "one argument", "");
    script("shell", "/bin/sh", "-e", "echo \"$0 says $1 $#\"\nfalse\necho not reached\n");
    char *names[] = { "./self", "./shell" };
    for (int i = 0; i < 2; i++) {
        if (fork() == 0) {
            execl(names[i], "replaced", "first", "second", NULL);
            _exit(99);
        }
        wait(&status);
        printf("ended with %d\n", WEXITSTATUS(status));
        fflush(stdout);
    }
    unlink("self");
}
