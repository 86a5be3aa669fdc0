// Groups and sessions: setpgid, waiting for a group, killing a group, setsid and its refusals.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    int status, killed = 0;
    pid_t group = 0;
    alarm(60);
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        if (!child) {
            alarm(60);
            for (;;)
                pause();
        }
        setpgid(child, group);
        if (!group)
            group = child;
        printf("in the group: %d\n", getpgid(child) == group);
    }
    fflush(stdout);
    killpg(group, SIGUSR2);
    while (waitpid(-group, &status, 0) > 0)
        killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR2;
    printf("killed %d, then %s\n", killed, strerror(errno));
    printf("kill of the empty group: %s\n", killpg(group, 0) ? strerror(errno) : "done");
    fflush(stdout);
    if (fork() == 0) {
        int made = setsid() == getpid() && getsid(0) == getpid() && getpgrp() == getpid();
        int again = setsid();
        printf("session: %d, again: %s", made, again < 0 ? strerror(errno) : "done");
        printf(", group of a leader: %s\n", setpgid(0, 0) < 0 ? strerror(errno) : "done");
        fflush(stdout);
        _exit(0);
    }
    wait(0);
}
