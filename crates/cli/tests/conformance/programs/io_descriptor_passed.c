// Descriptors sent to a child over a socket are the same open files there, at the lowest free numbers.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

union control { char bytes[CMSG_SPACE(2 * sizeof(int))]; struct cmsghdr align; };

int main(void)
{
    int pair[2], files[2];
    char text[8] = "";
    union control control = { 0 };
    struct iovec data = { text, 4 };
    struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control,
                              .msg_controllen = sizeof control };
    alarm(60);
    socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair);
    if (fork() == 0) {
        close(pair[0]);
        recvmsg(pair[1], &message, MSG_CMSG_CLOEXEC);
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        memcpy(files, CMSG_DATA(head), sizeof files);
        printf("with %s: kind %d, numbers %d %d, close-on-exec %d\n", text, head->cmsg_type, files[0], files[1],
               fcntl(files[0], F_GETFD));
        write(files[0], "by the child", 12);
        fflush(stdout);
        _exit(0);
    }
    files[0] = open("passed", O_CREAT | O_RDWR, 0644);
    files[1] = open("/dev/null", O_RDONLY);
    strcpy(text, "two");
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    *head = (struct cmsghdr){ CMSG_LEN(sizeof files), SOL_SOCKET, SCM_RIGHTS };
    memcpy(CMSG_DATA(head), files, sizeof files);
    ssize_t sent = sendmsg(pair[0], &message, 0);
    fflush(stdout);
    wait(0);
    printf("sent %zd, position moved to %ld\n", sent, (long)lseek(files[0], 0, SEEK_CUR));
}
