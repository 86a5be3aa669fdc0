// A parent reads and writes its child's memory by process_vm_readv and process_vm_writev.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    int ends[2], status = 0;
    char c, *text = malloc(300000), *copy = malloc(300000);
    alarm(60);
    pipe(ends);
    memset(text, 'p', 300000);
    pid_t child = fork();
    if (!child) {
        alarm(60);
        memset(text, 'c', 300000);
        write(ends[1], "x", 1);
        while (((volatile char *)text)[1000] != 'w')
            usleep(500);
        _exit(text[999] == 'c' ? 11 : 12);
    }
    read(ends[0], &c, 1);
    struct iovec here = { copy, 300000 }, there = { text, 300000 };
    ssize_t got = process_vm_readv(child, &here, 1, &there, 1, 0);
    printf("read %zd, first %c, last %c, its own %c\n", got, copy[0], copy[299999], text[0]);
    here = (struct iovec){ "w", 1 };
    there = (struct iovec){ text + 1000, 1 };
    got = process_vm_writev(child, &here, 1, &there, 1, 0);
    printf("written %zd\n", got);
    if (got != 1)
        kill(child, SIGTERM);
    waitpid(child, &status, 0);
    printf("ended with %d\n", WEXITSTATUS(status));
}
