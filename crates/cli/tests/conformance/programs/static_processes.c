// A static program forks, runs itself and a dynamic program, and both end with their codes.
// flags: -static
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int status = 0;
    alarm(60);
    if (argc > 1) {
        char *block = malloc(3 << 20);
        memset(block, 1, 3 << 20);
        printf("run by itself as %s\n", argv[1]);
        return block[5] + 6;
    }
    for (int i = 0; i < 3; i++) {
        if (fork() == 0) {
            if (i == 0)
                execl(argv[0], argv[0], "child", NULL);
            if (i == 1)
                execl("/bin/sh", "sh", "-c", "echo a dynamic one; exit 8", NULL);
            _exit(9);
        }
        wait(&status);
        printf("ended with %d\n", WEXITSTATUS(status));
        fflush(stdout);
    }
}
