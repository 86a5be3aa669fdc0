// Sleeping calls that no signal disturbs run into their time limit and are never interrupted.
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int main(void)
{
    int interrupted = 0, timed_out = 0, word = 0, pair[2], epoll = epoll_create1(0);
    struct epoll_event event;
    struct timeval wait = { 0, 8000 };
    sigset_t set;
    sem_t sem;
    char c;
    alarm(60);
    sem_init(&sem, 0, 0);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, 0);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    for (int round = 0; round < 16; round++) {
        struct timespec until, limit = { 0, 8000000 };
        struct timeval limit_too = wait;
        int result = 0;
        errno = 0;
        switch (round % 8) {
        case 0: result = nanosleep(&limit, 0); break;
        case 1: result = poll(0, 0, 8); break;
        case 2: result = epoll_wait(epoll, &event, 1, 8); break;
        case 3: result = select(0, 0, 0, 0, &limit_too); break;
        case 4: result = sigtimedwait(&set, 0, &limit); break;
        case 5: result = syscall(SYS_futex, &word, FUTEX_WAIT, 0, &limit, 0, 0); break;
        case 6: result = recv(pair[0], &c, 1, 0); break;
        case 7:
            clock_gettime(CLOCK_REALTIME, &until);
            until.tv_nsec += 8000000;
            until.tv_sec += until.tv_nsec / 1000000000;
            until.tv_nsec %= 1000000000;
            result = sem_timedwait(&sem, &until);
        }
        interrupted += result < 0 && errno == EINTR;
        timed_out += result == 0 || errno == EAGAIN || errno == ETIMEDOUT;
    }
    printf("interrupted %d, timed out %d\n", interrupted, timed_out);
}
