// A pipe holds 65536 bytes, then refuses or blocks; its size can be changed, and what is in it is told.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int main(void)
{
    static char block[1 << 17];
    int ends[2], inside = 0;
    long written = 0;
    pipe2(ends, O_NONBLOCK);
    for (ssize_t n; (n = write(ends[1], block, 1000)) > 0;)
        written += n;
    int error = errno;
    ioctl(ends[0], FIONREAD, &inside);
    printf("written %ld, %s, inside %d, size %d\n", written, strerror(error), inside, fcntl(ends[1], F_GETPIPE_SZ));
    printf("read %zd, ", read(ends[0], block, sizeof block));
    printf("then %zd\n", read(ends[0], block, sizeof block));
    printf("size set %d, ", fcntl(ends[1], F_SETPIPE_SZ, 8192));
    printf("written %zd\n", write(ends[1], block, sizeof block));
}
