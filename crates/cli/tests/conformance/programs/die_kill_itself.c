// A program that sends itself SIGKILL dies of it at once, leaving the file that it wrote.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

int main(void)
{
    int file = open("written", O_CREAT | O_WRONLY, 0644);
    write(file, "before the end\n", 15);
    kill(getpid(), SIGKILL);
    write(file, "after the end\n", 14);
    return 1;
}
