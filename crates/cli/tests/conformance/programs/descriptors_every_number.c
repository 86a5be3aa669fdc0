// Every number from 3 to 1023 may be taken by dup2, written through and closed; none of them was in use.
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    int in_use = 0, taken = 0, written = 0, ends[2];
    char got[2048];
    alarm(60);
    pipe(ends);
    for (int i = 3; i < 1024; i++)
        in_use += i != ends[0] && i != ends[1] && fcntl(i, F_GETFD) >= 0;
    for (int i = 5; i < 1024; i++)
        taken += dup2(ends[1], i) == i;
    usleep(10000);
    for (int i = 5; i < 1024; i++)
        written += write(i, "x", 1) == 1;
    ssize_t got_bytes = read(ends[0], got, sizeof got);
    printf("in use: %d, taken: %d, written: %d, read: %zd\n", in_use, taken, written, got_bytes);
    for (int i = 1023; i > 4; i--)
        taken -= close(i) == 0;
    printf("not closed: %d, next: %d\n", taken, dup(0));
}
