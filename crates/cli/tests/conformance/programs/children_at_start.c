// At the start of main the program has no children, of any kind.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    char path[64], text[256] = "";
    int status;
    alarm(60);
    int got = waitpid(-1, &status, WNOHANG | __WALL);
    printf("wait: %s, %s\n", got > 0 ? "a child" : got ? "none" : "one that runs", strerror(errno));
    snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
    FILE *file = fopen(path, "r");
    if (file)
        fgets(text, sizeof text, file);
    printf("listed: %s\n", *text ? "some" : "none");
}
