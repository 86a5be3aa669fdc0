// A writer whose reader goes away is killed by SIGPIPE, and the reader's side sees what it read.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    int ends[2], status = 0;
    char line[16] = "";
    alarm(60);
    pipe(ends);
    pid_t child = fork();
    if (!child) {
        close(ends[0]);
        dup2(ends[1], 1);
        signal(SIGPIPE, SIG_DFL);
        for (int i = 0; i < 1000000; i++)
            printf("line %06d\n", i);
        _exit(1);
    }
    close(ends[1]);
    read(ends[0], line, 11);
    close(ends[0]);
    waitpid(child, &status, 0);
    printf("read %s, writer killed by SIGPIPE: %d\n", line, WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE);
}
