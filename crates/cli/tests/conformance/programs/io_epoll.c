// epoll tells readiness of pipes by level, by edge and once, wakes a waiting thread, and forgets what is closed.
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

static int level[2], edge[2], once[2];

static void *later(void *unused)
{
    usleep(10000);
    write(edge[1], "x", 1);
    return 0;
}

static void say(const char *when, int epoll, int limit)
{
    struct epoll_event events[8];
    unsigned seen[4] = { 0 };
    int count = epoll_wait(epoll, events, 8, limit);
    for (int i = 0; i < count; i++)
        seen[events[i].data.u32] = events[i].events;
    printf("%s: %d ready, level %x, edge %x, once %x\n", when, count, seen[1], seen[2], seen[3]);
}

int main(void)
{
    pthread_t thread;
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    alarm(60);
    pipe(level);
    pipe(edge);
    pipe(once);
    epoll_ctl(epoll, EPOLL_CTL_ADD, level[0], &(struct epoll_event){ EPOLLIN, { .u32 = 1 } });
    epoll_ctl(epoll, EPOLL_CTL_ADD, edge[0], &(struct epoll_event){ EPOLLIN | EPOLLET, { .u32 = 2 } });
    epoll_ctl(epoll, EPOLL_CTL_ADD, once[0], &(struct epoll_event){ EPOLLIN | EPOLLONESHOT, { .u32 = 3 } });
    int again = epoll_ctl(epoll, EPOLL_CTL_ADD, once[0], &(struct epoll_event){ EPOLLIN });
    printf("twice: %d, %s\n", again, strerror(errno));
    say("nothing written", epoll, 5);
    write(level[1], "x", 1);
    write(edge[1], "x", 1);
    write(once[1], "x", 1);
    say("written", epoll, 10000);
    say("again", epoll, 5);
    pthread_create(&thread, 0, later, 0);
    close(level[1]);
    close(level[0]);
    say("woken", epoll, 30000);
    pthread_join(thread, 0);
    epoll_ctl(epoll, EPOLL_CTL_MOD, once[0], &(struct epoll_event){ EPOLLIN | EPOLLONESHOT, { .u32 = 3 } });
    close(once[1]);
    say("armed again, closed", epoll, 10000);
}
