// What stands in a buffer when the program forks is written by parent and child.
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    static char buffer[4096];
    alarm(60);
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    printf("twice;");
    if (fork() == 0) {
        printf("child\n");
        exit(0);
    }
    wait(0);
    printf("parent\n");
}
