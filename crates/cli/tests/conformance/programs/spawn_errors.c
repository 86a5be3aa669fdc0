// posix_spawn reports what fails in the child: a missing program, one that may not be run, and a file that can't be opened.
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char *arguments[] = { argv[0], "child", 0 };
    posix_spawn_file_actions_t actions;
    pid_t pid;
    alarm(60);
    if (argc > 1)
        return puts("ran"), 0;
    setenv("PATH", "/usr/bin:/bin", 1);
    close(open("locked", O_CREAT | O_WRONLY, 0644));
    printf("missing: %s\n", strerror(posix_spawn(&pid, "./missing", 0, 0, arguments, environ)));
    printf("on the path: %s\n", strerror(posix_spawnp(&pid, "no-such-program-anywhere", 0, 0, arguments, environ)));
    printf("locked: %s\n", strerror(posix_spawn(&pid, "./locked", 0, 0, arguments, environ)));
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "no/such/file", O_RDONLY, 0);
    printf("no file: %s\n", strerror(posix_spawn(&pid, argv[0], &actions, 0, arguments, environ)));
    printf("children left: %s\n", wait(0) < 0 ? strerror(errno) : "some");
}
