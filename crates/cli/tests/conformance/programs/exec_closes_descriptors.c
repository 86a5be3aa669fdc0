// exec closes the descriptors that are marked so, and no others.
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    alarm(60);
    if (argc > 1) {
        printf("open:");
        for (int i = 40; i < 70; i++)
            if (fcntl(i, F_GETFD) >= 0)
                printf(" %d", i);
        printf("\n");
        return 0;
    }
    for (int i = 40; i < 70; i++)
        dup3(1, i, i % 3 ? O_CLOEXEC : 0);
    fcntl(41, F_SETFD, 0);
    fcntl(42, F_SETFD, FD_CLOEXEC);
    execl(argv[0], argv[0], "child", NULL);
}
