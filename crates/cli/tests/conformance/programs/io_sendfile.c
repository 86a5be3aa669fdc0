// A file is sent to a socket and to another file by sendfile, from any place in it.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void)
{
    static char block[20000], got[20000];
    int pair[2];
    off_t at = 5000;
    alarm(60);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    int file = open("source", O_CREAT | O_RDWR, 0644), other = open("other", O_CREAT | O_RDWR, 0644);
    for (int i = 0; i < sizeof block; i++)
        block[i] = i * 31 >> 3;
    write(file, block, sizeof block);
    printf("to a socket: %zd, ", sendfile(pair[0], file, &at, 10000));
    printf("now at %ld, ", (long)at);
    printf("right: %d\n", recv(pair[1], got, 10000, MSG_WAITALL) == 10000 && !memcmp(got, block + 5000, 10000));
    lseek(file, 100, SEEK_SET);
    printf("to a file: %zd, ", sendfile(other, file, 0, 1 << 20));
    printf("position %ld\n", (long)lseek(file, 0, SEEK_CUR));
    printf("right: %d\n", pread(other, got, sizeof got, 0) == 19900 && !memcmp(got, block + 100, 19900));
}
