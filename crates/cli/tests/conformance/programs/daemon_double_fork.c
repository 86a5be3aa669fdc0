// A daemon made by two forks and setsid leaves its session, outlives its parent, writes its file and ends.
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    int ends[2], status = 0;
    char text[64] = "";
    alarm(60);
    pipe(ends);
    pid_t child = fork();
    if (!child) {
        int leader = setsid() == getpid();
        if (fork())
            _exit(leader ? 3 : 4);
        pid_t middle = getsid(0);
        for (int i = 0; i < 10000 && getppid() == middle; i++)
            usleep(500);
        close(0);
        int file = open("daemon.log", O_CREAT | O_WRONLY, 0644);
        dprintf(file, "leads its session: %d, adopted: %d\n", getsid(0) == getpid(), getppid() != middle);
        write(ends[1], "written", 7);
        _exit(0);
    }
    waitpid(child, &status, 0);
    printf("middle ended with %d\n", WEXITSTATUS(status));
    close(ends[1]);
    for (int got = 0, n; (n = read(ends[0], text + got, sizeof text - 1 - got)) > 0; got += n)
        ;
    printf("daemon says %s\n", text);
    usleep(10000);
}
