// vfork followed by exec runs the program while the parent waits, and a failed exec reaches the parent as a code.
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int status = 0;
    alarm(60);
    if (argc > 1) {
        printf("run as %s\n", argv[1]);
        return 41;
    }
    pid_t child = vfork();
    if (!child) {
        execl(argv[0], argv[0], "child", NULL);
        _exit(1);
    }
    waitpid(child, &status, 0);
    printf("child ended with %d\n", WEXITSTATUS(status));
    child = vfork();
    if (!child) {
        execl("missing", "missing", NULL);
        _exit(127);
    }
    waitpid(child, &status, 0);
    printf("missing program: %d\n", WEXITSTATUS(status));
}
