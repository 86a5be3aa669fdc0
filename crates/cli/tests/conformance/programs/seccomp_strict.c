// In strict mode a program may write and leave by the raw call; anything else kills it.
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    int status = 0;
    alarm(60);
    for (int forbidden = 0; forbidden < 2; forbidden++) {
        pid_t child = fork();
        if (!child) {
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
            write(1, "still writing\n", 14);
            if (forbidden)
                syscall(SYS_getppid);
            syscall(SYS_exit, 15);
        }
        waitpid(child, &status, 0);
        if (WIFEXITED(status))
            printf("ended with %d\n", WEXITSTATUS(status));
        else
            printf("killed by %d\n", WTERMSIG(status));
        fflush(stdout);
    }
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    write(1, "main itself\n", 12);
    syscall(SYS_exit, 0);
}
