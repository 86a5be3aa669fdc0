// A static program runs itself inside a chroot, where there is nothing else.
// needs: root
// flags: -static
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct stat size;
    int status = 0;
    alarm(60);
    if (argc > 1) {
        printf("in the jail: %s, /etc there: %d\n", argv[1], access("/etc", F_OK) == 0);
        return 24;
    }
    int from = open(argv[0], O_RDONLY), to = open("copy", O_CREAT | O_WRONLY, 0755);
    fstat(from, &size);
    for (long left = size.st_size, n; left > 0 && (n = sendfile(to, from, 0, left)) > 0; left -= n)
        ;
    close(to);
    if (fork() == 0) {
        chroot(".");
        chdir("/");
        execl("/copy", "/copy", "child", NULL);
        printf("exec: %s\n", strerror(errno));
        fflush(stdout);
        _exit(1);
    }
    wait(&status);
    unlink("copy");
    printf("ended with %d\n", WEXITSTATUS(status));
}
