// A child that asked for it gets its signal when its parent ends.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int out;

static void handler(int number)
{
    dprintf(out, "got %d after the parent's end", number);
    _exit(0);
}

int main(void)
{
    int ends[2], ready[2], set = 0;
    char text[64] = "", c;
    alarm(60);
    pipe(ends);
    pipe(ready);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (fork() == 0) {
        if (fork() == 0) {
            alarm(60);
            out = ends[1];
            signal(SIGUSR1, handler);
            prctl(PR_SET_PDEATHSIG, SIGUSR1);
            prctl(PR_GET_PDEATHSIG, &set);
            dprintf(out, "set to %d; ", set);
            write(ready[1], "x", 1);
            for (;;)
                pause();
        }
        read(ready[0], &c, 1);
        _exit(0);
    }
    wait(0);
    close(ends[1]);
    for (int got = 0, n; (n = read(ends[0], text + got, sizeof text - 1 - got)) > 0; got += n)
        ;
    wait(0);
    prctl(PR_GET_PDEATHSIG, &set);
    printf("%s; the program's own at its start: %d\n", text, set);
}
