// The parent sees the lowest eight bits of each child's code.
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    int codes[] = { 0, 1, 127, 128, 255, 256, 263, -1, 0x12345678 };
    alarm(60);
    for (int i = 0; i < sizeof codes / sizeof *codes; i++) {
        int status = 0;
        pid_t child = fork();
        if (!child)
            _exit(codes[i]);
        waitpid(child, &status, 0);
        printf("%d is seen as %d, exited: %d\n", codes[i], WEXITSTATUS(status), WIFEXITED(status));
    }
    return 300;
}
