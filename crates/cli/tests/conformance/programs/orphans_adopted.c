// A subreaper adopts the orphans below it and waits for them; without that it gets none.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(int subreaper)
{
    int status, children = 0, sum = 0, ends[2];
    char c;
    prctl(PR_SET_CHILD_SUBREAPER, subreaper);
    pipe(ends);
    if (fork() == 0) {
        for (int i = 1; i <= 3; i++)
            if (fork() == 0) {
                close(ends[1]);
                read(ends[0], &c, 1); /* until the first parent has seen the middle one end */
                _exit(i * 10);
            }
        _exit(1);
    }
    close(ends[0]);
    wait(&status);
    sum = WEXITSTATUS(status);
    close(ends[1]);
    while (wait(&status) > 0) {
        children++;
        sum += WEXITSTATUS(status);
    }
    printf("subreaper %d: middle and %d orphans, codes together %d, then %s\n", subreaper, children, sum, strerror(errno));
    fflush(stdout);
}

int main(void)
{
    alarm(60);
    say(1);
    usleep(10000);
    say(0);
    usleep(20000);
}
