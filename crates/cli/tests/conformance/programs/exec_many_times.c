// A program that runs itself four times in a row counts down and keeps its process.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char count[16], process[16];
    int left = argc > 1 ? atoi(argv[1]) : 3;
    alarm(60);
    printf("%d left, same process: %d\n", left, argc < 3 || atoi(argv[2]) == getpid());
    fflush(stdout);
    if (!left)
        return 30;
    snprintf(count, sizeof count, "%d", left - 1);
    snprintf(process, sizeof process, "%d", getpid());
    execl(argv[0], argv[0], count, process, NULL);
}
