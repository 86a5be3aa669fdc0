// A program may be run under an empty name and under any other name, and finds that as argv[0].
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int status = 0;
    alarm(60);
    if (argc == 2) {
        printf("name '%s', argument '%s'\n", argv[0], argv[1]);
        return 3;
    }
    char *names[] = { "", "another name", "-shell" };
    for (int i = 0; i < 3; i++) {
        if (fork() == 0) {
            execl(argv[0], names[i], "child", NULL);
            _exit(1);
        }
        wait(&status);
        printf("ended with %d\n", WEXITSTATUS(status));
        fflush(stdout);
    }
}
