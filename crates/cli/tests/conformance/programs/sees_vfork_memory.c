// The child of vfork writes to its parent's memory (under Valgrind and QEMU vfork is a fork, and it does not).
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    volatile int value = 1;
    alarm(60);
    pid_t child = vfork();
    if (!child) {
        value = 2;
        _exit(0);
    }
    waitpid(child, 0, 0);
    printf("the child's write is seen: %s\n", value == 2 ? "yes" : "no");
}
