// After closing every descriptor from 0 on, files that the program opens get the numbers from 0.
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    int numbers[40];
    puts("closing all");
    fflush(stdout);
    close_range(0, ~0U, 0);
    for (int i = 0; i < 40; i++)
        numbers[i] = open(i ? "/dev/null" : "result", O_CREAT | O_RDWR, 0644);
    for (int i = 0; i < 40; i++)
        dprintf(numbers[0], "%d ", numbers[i]);
    dprintf(numbers[0], "\nclosed: %d\n", close_range(0, 1023, 0));
    int again = open("again", O_CREAT | O_WRONLY, 0644);
    dprintf(again, "%d\n", again);
    return again;
}
