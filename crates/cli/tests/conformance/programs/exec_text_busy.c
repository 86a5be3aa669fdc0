// A program file that is open for writing can't be run, and a running one can't be written.
// flags: -static
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct stat size;
    alarm(60);
    if (argc > 1)
        return puts("ran"), 1;
    int from = open(argv[0], O_RDONLY), to = open("copy", O_CREAT | O_WRONLY, 0755);
    fstat(from, &size);
    for (long left = size.st_size, n; left > 0 && (n = sendfile(to, from, 0, left)) > 0; left -= n)
        ;
    execl("./copy", "copy", "again", NULL);
    printf("run: %s\n", strerror(errno));
    printf("written: %s\n", open(argv[0], O_WRONLY) < 0 ? "refused" : "opened");
    unlink("copy");
}
