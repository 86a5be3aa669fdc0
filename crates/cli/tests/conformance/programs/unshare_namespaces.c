// Root may take namespaces of its own: a child is process 1 there, and the host's name and mounts change only inside.
// needs: root
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    struct utsname before, inside, after;
    int status = 0;
    alarm(60);
    mkdir("place", 0755);
    uname(&before);
    if (fork() == 0) {
        int refused = unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWPID | CLONE_NEWIPC);
        printf("unshare: %s\n", refused ? strerror(errno) : "done");
        fflush(stdout);
        if (refused)
            _exit(1);
        sethostname("inside", 6);
        uname(&inside);
        if (fork() == 0) {
            printf("host %s, process %d, parent %d\n", inside.nodename, getpid(), getppid());
            printf("private: %d, ", mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL));
            printf("mounted: %d\n", mount("none", "place", "tmpfs", 0, NULL));
            mkdir("place/only_inside", 0755);
            fflush(stdout);
            _exit(5);
        }
        wait(&status);
        _exit(WEXITSTATUS(status));
    }
    wait(&status);
    uname(&after);
    printf("ended with %d, host's name kept: %d, seen outside: %d\n", WEXITSTATUS(status),
           !strcmp(before.nodename, after.nodename), access("place/only_inside", F_OK) == 0);
}
