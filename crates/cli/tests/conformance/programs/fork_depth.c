// Six processes, each the child of the one before, each end with their depth added to their child's code.
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int deeper(int depth)
{
    int status = 0, ends[2];
    char c = 0;
    if (depth == 6)
        return 1;
    pipe(ends);
    pid_t parent = getpid(), child = fork();
    if (!child) {
        c = getppid() == parent;
        write(ends[1], &c, 1);
        _exit(deeper(depth + 1));
    }
    read(ends[0], &c, 1);
    waitpid(child, &status, 0);
    printf("depth %d: child ended with %d, its parent right: %d\n", depth, WEXITSTATUS(status), c);
    fflush(stdout);
    return WEXITSTATUS(status) + depth;
}

int main(void)
{
    alarm(60);
    return deeper(0);
}
