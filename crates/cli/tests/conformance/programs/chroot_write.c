// After chroot into its folder the program sees that as the root, and writes there.
// needs: root
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int main(void)
{
    char folder[4096];
    mkdir("jail", 0755);
    printf("chroot: %d\n", chroot("jail"));
    printf("outside first: %s\n", getcwd(folder, sizeof folder) ? "has a name" : strerror(errno));
    chdir("/");
    printf("folder: %s\n", getcwd(folder, sizeof folder));
    printf("/proc: %s\n", access("/proc", F_OK) ? strerror(errno) : "there");
    printf("/lib64: %s\n", access("/lib64", F_OK) ? strerror(errno) : "there");
    execl("/bin/sh", "sh", NULL);
    printf("exec: %s\n", strerror(errno));
    write(open("/inside", O_CREAT | O_WRONLY, 0644), "written in the jail\n", 20);
    usleep(10000);
    for (int i = 0; i < 100; i++)
        free(realloc(NULL, i << 10));
    printf("..: %d\n", chdir("../../.."));
    printf("still %s\n", getcwd(folder, sizeof folder));
}
