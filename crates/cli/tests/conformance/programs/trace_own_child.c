// The program itself may trace its child: stop it, read and change its memory, see its exec-free end.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile long word = 1111;

int main(void)
{
    int status;
    alarm(60);
    pid_t child = fork();
    if (!child) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) < 0)
            _exit(100);
        raise(SIGUSR1);
        _exit(word == 2222 ? 7 : 8);
    }
    waitpid(child, &status, 0);
    printf("stopped by %d\n", WIFSTOPPED(status) ? WSTOPSIG(status) : -WEXITSTATUS(status));
    printf("word: %ld\n", ptrace(PTRACE_PEEKDATA, child, &word, 0));
    printf("changed: %ld\n", ptrace(PTRACE_POKEDATA, child, &word, 2222L));
    ptrace(PTRACE_CONT, child, 0, 0);
    waitpid(child, &status, 0);
    printf("ended with %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}
