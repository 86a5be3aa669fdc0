// exec keeps the process, its parent, folder, umask, nice value, alarm and children, and drops mappings.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char folder[4096], numbers[5][24];
    if (argc > 1) {
        int status = 0, mapped;
        unsigned left = alarm(60);
        waitpid(atoi(argv[3]), &status, 0);
        printf("process %d, parent %d, child's code %d\n", atoi(argv[1]) == getpid(), atoi(argv[2]) == getppid(),
               WEXITSTATUS(status));
        printf("folder %s, umask %03o, alarm runs: %d\n", strrchr(getcwd(folder, sizeof folder), '/') + 1, umask(0),
               left > 600 && left <= 1000);
        mapped = msync((void *)strtoul(argv[4], 0, 16), 4096, MS_ASYNC) == 0;
        printf("nice value kept: %d, old mapping there: %d\n", getpriority(PRIO_PROCESS, 0) == atoi(argv[5]), mapped);
        return 0;
    }
    snprintf(numbers[4], 24, "%d", nice(3));
    alarm(1000);
    umask(031);
    mkdir("inside", 0777);
    chdir("inside");
    pid_t child = fork();
    if (!child)
        _exit(19);
    void *map = mmap((void *)0x123400000000, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    snprintf(numbers[0], 24, "%d", getpid());
    snprintf(numbers[1], 24, "%d", getppid());
    snprintf(numbers[2], 24, "%d", child);
    snprintf(numbers[3], 24, "%lx", (unsigned long)map);
    execl(argv[0], argv[0], numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], NULL);
}
