// Scattered reads and writes, with positions, and with parts of no length, move the right bytes.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

int main(void)
{
    char a[8] = "", b[8] = "", c[64] = "";
    int file = open("vectors", O_CREAT | O_RDWR, 0644);
    struct iovec out[] = { { "first ", 6 }, { "", 0 }, { "second ", 7 }, { "third", 5 } };
    struct iovec in[] = { { a, 3 }, { b, 7 }, { NULL, 0 }, { c, 60 } };
    printf("written %zd, ", writev(file, out, 4));
    printf("at 100: %zd, ", pwritev(file, out, 3, 100));
    printf("position %ld\n", (long)lseek(file, 0, SEEK_CUR));
    lseek(file, 0, SEEK_SET);
    ssize_t count = readv(file, in, 4);
    printf("read %zd: %s|%s|%s\n", count, a, b, c);
    memset(c, 0, sizeof c);
    printf("at 103: %zd: ", preadv(file, in, 4, 103));
    printf("%s|%s|%s\n", a, b, c);
    count = writev(file, out, -1);
    printf("bad count: %zd, %s\n", count, strerror(errno));
    struct iovec bad[] = { { "good", 4 }, { (void *)8, 4 } };
    count = pwritev(file, bad, 2, 200);
    printf("bad address: %zd, %ld\n", count, (long)lseek(file, 0, SEEK_END));
    count = preadv2(file, in, 2, -1, 0);
    printf("from the position: %zd\n", count);
}
