// Output and errors that go to one place stand there in the order written, whole lines and parts, unbuffered and buffered.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    int file = open("both", O_CREAT | O_WRONLY | O_APPEND, 0644), out = dup(1), err = dup(2);
    dup2(file, 1);
    dup2(file, 2);
    for (int i = 0; i < 20; i++) {
        printf("out %d ", i);
        if (i % 4 == 3)
            fflush(stdout);
        fprintf(stderr, "err %d\n", i);
        if (i % 5 == 0)
            write(1, "raw ", 4);
    }
    fflush(stdout);
    dup2(out, 1);
    dup2(err, 2);
    printf("to the output\n");
    fprintf(stderr, "to the errors\n");
    errno = ENOENT;
    perror("a name");
}
