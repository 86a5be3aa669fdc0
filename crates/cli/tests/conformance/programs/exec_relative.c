// A program may be run by execveat relative to an open folder, and by a symbolic link.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char target[4096] = "";
    int status = 0;
    alarm(60);
    if (argc > 1) {
        readlink("/proc/self/exe", target, sizeof target - 1);
        printf("%s, /proc/self/exe ends as the file's name: %d\n", argv[1],
               !strcmp(strrchr(target, '/'), strrchr(argv[2], '/')));
        return 4;
    }
    symlink(argv[0], "link");
    for (int i = 0; i < 2; i++) {
        if (fork() == 0) {
            int folder = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
            char *arguments[] = { "link", i ? "by execveat" : "by link", argv[0], NULL };
            if (i)
                syscall(SYS_execveat, folder, "link", arguments, environ, 0);
            else
                execv("./link", arguments);
            printf("%s\n", strerror(errno));
            fflush(stdout);
            _exit(1);
        }
        wait(&status);
        printf("ended with %d\n", WEXITSTATUS(status));
        fflush(stdout);
    }
}
