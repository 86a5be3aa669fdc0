// Without input the standard input is at its end, and so it is for children and after exec.
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char c;
    alarm(60);
    printf("read %zd, ", read(0, &c, 1));
    printf("getchar %d\n", getchar());
    fflush(stdout);
    if (argc > 1)
        return 0;
    if (fork() == 0) {
        printf("child read %zd\n", read(0, &c, 1));
        fflush(stdout);
        _exit(0);
    }
    wait(0);
    execl(argv[0], argv[0], "again", NULL);
}
