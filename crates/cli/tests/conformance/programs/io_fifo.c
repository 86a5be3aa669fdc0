// Through a named pipe in the folder two processes meet, and without a writer opening fails or waits as told.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    struct stat state;
    char text[64] = "";
    alarm(60);
    printf("made: %d, ", mkfifo("pipe", 0644));
    printf("for writing alone: %s\n", open("pipe", O_WRONLY | O_NONBLOCK) < 0 ? strerror(errno) : "opened");
    fflush(stdout);
    if (fork() == 0) {
        int file = open("pipe", O_WRONLY);
        write(file, "through the pipe", 16);
        _exit(0);
    }
    int file = open("pipe", O_RDONLY);
    for (int got = 0, n; (n = read(file, text + got, 63 - got)) > 0; got += n)
        ;
    wait(0);
    fstat(file, &state);
    printf("%s, is a pipe: %d\n", text, S_ISFIFO(state.st_mode));
}
