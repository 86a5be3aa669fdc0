// poll, ppoll and select run into their time limits, tell what is ready, closed or no descriptor, and take high numbers.
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

int main(void)
{
    int ends[2], shut[2];
    struct timespec before, after, limit = { 0, 12000000 };
    fd_set set;
    alarm(60);
    pipe(ends);
    pipe(shut);
    close(shut[1]);
    struct pollfd all[] = { { ends[0], POLLIN }, { ends[1], POLLOUT }, { shut[0], POLLIN },
                            { 990, POLLIN }, { -1, POLLIN } };
    printf("poll: %d:", poll(all, 5, 10000));
    for (int i = 0; i < 5; i++)
        printf(" %x", all[i].revents);
    clock_gettime(CLOCK_MONOTONIC, &before);
    int got = poll(all, 1, 12) + ppoll(all, 1, &limit, 0);
    clock_gettime(CLOCK_MONOTONIC, &after);
    long waited = (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
    printf("\ntime limits: %d, waited long enough: %d\n", got, waited >= 23);
    int high = dup2(ends[0], 1000);
    write(ends[1], "x", 1);
    FD_ZERO(&set);
    FD_SET(high, &set);
    FD_SET(shut[0], &set);
    got = select(1001, &set, 0, 0, &(struct timeval){ 10, 0 });
    printf("select: %d, high %d, closed %d\n", got, FD_ISSET(high, &set) != 0, FD_ISSET(shut[0], &set) != 0);
}
