// A program may be run with standard input, output and error closed; the files that it opens get these numbers.
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    alarm(60);
    if (argc > 1) {
        int open_before[3];
        for (int i = 0; i < 3; i++)
            open_before[i] = fcntl(i, F_GETFD) >= 0;
        int first = open("result", O_CREAT | O_WRONLY, 0644), second = open("/dev/null", O_RDWR), third = dup(second);
        dprintf(first, "open before: %d %d %d, opened: %d %d %d\n", open_before[0], open_before[1], open_before[2], first,
                second, third);
        return 9;
    }
    puts("closing");
    fflush(stdout);
    close(0);
    close(1);
    close(2);
    execl(argv[0], argv[0], "child", NULL);
}
