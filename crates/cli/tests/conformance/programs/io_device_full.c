// Output that no room is left for fails with the right error, at once or when the buffer is written.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
    char block[100];
    int file = open("/dev/full", O_RDWR);
    ssize_t count = write(file, "x", 1);
    printf("write: %zd, %s\n", count, strerror(errno));
    count = read(file, block, 100);
    printf("read: %zd, zero: %d\n", count, block[0] == 0 && block[99] == 0);
    FILE *stream = fopen("/dev/full", "w");
    int put = fputs("buffered", stream);
    errno = 0;
    int flushed = fflush(stream);
    printf("buffered: %d, flushed: %d, %s, error: %d\n", put >= 0, flushed, strerror(errno), ferror(stream) != 0);
    printf("closed: %d\n", fclose(stream));
    printf("zero: %zd, ", read(open("/dev/zero", O_RDONLY), block, 100));
    printf("null: %zd\n", read(open("/dev/null", O_RDONLY), block, 100));
}
