// system and popen run a shell, with its codes, output, input and signals.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    char line[64] = "";
    alarm(60);
    int status = system("echo from the shell; exit 3");
    printf("code %d\n", WEXITSTATUS(status));
    fflush(stdout);
    status = system("kill -9 $$");
    printf("killed by %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    FILE *pipe = popen("echo one; echo two", "r");
    while (fgets(line, sizeof line, pipe))
        printf("read %s", line);
    printf("closed: %d\n", pclose(pipe));
    fflush(stdout);
    pipe = popen("read a; read b; echo \"$b $a\"; exit 9", "w");
    fputs("first\nsecond\n", pipe);
    printf("closed: %d\n", WEXITSTATUS(pclose(pipe)));
}
