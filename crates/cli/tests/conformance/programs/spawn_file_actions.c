// posix_spawn opens, duplicates and closes descriptors, and sets mask, defaults and group as told.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int child(void)
{
    struct sigaction act;
    sigset_t set;
    char text[8] = "";
    read(0, text, 7);
    sigprocmask(SIG_BLOCK, 0, &set);
    sigaction(SIGHUP, 0, &act);
    printf("read %s, 7 open: %d, 8 open: %d, SIGUSR1 blocked: %d, SIGHUP default: %d, own group: %d\n", text,
           fcntl(7, F_GETFD) >= 0, fcntl(8, F_GETFD) >= 0, sigismember(&set, SIGUSR1), act.sa_handler == SIG_DFL,
           getpgrp() == getpid());
    return 5;
}

int main(int argc, char **argv)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t set;
    char *arguments[] = { argv[0], "child", 0 };
    int status = 0;
    pid_t pid;
    alarm(60);
    if (argc > 1)
        return child();
    write(open("input", O_CREAT | O_WRONLY, 0600), "hello", 5);
    dup2(1, 8);
    signal(SIGHUP, SIG_IGN);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "input", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "output", O_CREAT | O_WRONLY, 0644);
    posix_spawn_file_actions_adddup2(&actions, 1, 7);
    posix_spawn_file_actions_addclose(&actions, 8);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    posix_spawnattr_setsigmask(&attributes, &set);
    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    posix_spawnattr_setsigdefault(&attributes, &set);
    printf("spawn: %s\n", strerror(posix_spawn(&pid, argv[0], &actions, &attributes, arguments, environ)));
    waitpid(pid, &status, 0);
    printf("ended with %d\n", WEXITSTATUS(status));
}
