// Run by nobody, a program that sets its user to root has its rights and the secure mode, and says nothing of preloading.
// needs: root
// flags: -fno-builtin
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct stat size;
    int status = 0;
    alarm(60);
    if (argc > 1) {
        free(malloc(100000));
        printf("user %d, effective %d, secure %ld\n", getuid(), geteuid(), getauxval(AT_SECURE));
        return 14;
    }
    int from = open(argv[0], O_RDONLY), to = open("copy", O_CREAT | O_WRONLY, 0755);
    fstat(from, &size);
    for (long left = size.st_size, n; left > 0 && (n = sendfile(to, from, 0, left)) > 0; left -= n)
        ;
    fchmod(to, 04755);
    close(to);
    int copy = open("copy", O_PATH);
    if (fork() == 0) {
        if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
            _exit(2);
        syscall(SYS_execveat, copy, "", (char *[]){ "copy", "again", NULL }, environ, AT_EMPTY_PATH);
        printf("exec: %s\n", strerror(errno));
        fflush(stdout);
        _exit(1);
    }
    wait(&status);
    unlink("copy");
    printf("ended with %d\n", WEXITSTATUS(status));
}
