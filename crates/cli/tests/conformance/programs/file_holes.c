// A file with holes takes little room, reads zero there, beyond 4 GiB too, and its data is found by seeking.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int main(void)
{
    struct stat state;
    char text[32] = "", zero[4096];
    long far = 5L << 30;
    int file = open("sparse", O_CREAT | O_RDWR, 0644), wrong = 0;
    pwrite(file, "start", 5, 0);
    pwrite(file, "middle", 6, 1 << 20);
    ssize_t written = pwrite(file, "far away", 8, far);
    pread(file, text, 8, far);
    fstat(file, &state);
    printf("written %zd, %s, size %ld, less than 1 MiB on disk: %d\n", written, text, (long)state.st_size,
           state.st_blocks < 2048);
    pread(file, zero, sizeof zero, 512 << 10);
    for (int i = 0; i < sizeof zero; i++)
        wrong += zero[i] != 0;
    lseek(file, far, SEEK_SET);
    read(file, text, 3);
    printf("not zero %d, position %ld, ", wrong, (long)lseek(file, 0, SEEK_CUR));
    printf("behind the end %zd\n", pread(file, text, 8, far + 8));
    long data = lseek(file, 4096, SEEK_DATA), hole = lseek(file, 0, SEEK_HOLE);
    printf("data found: %d, hole found: %d\n", data > 4096 && data <= 1 << 20, hole > 0 && hole <= 1 << 20);
    long none = lseek(file, far + 100, SEEK_DATA);
    printf("none behind the end: %ld, %s\n", none, strerror(errno));
    ftruncate(file, 3);
    memset(text, 0, sizeof text);
    printf("cut: %zd, ", pread(file, text, 31, 0));
    printf("%s\n", text);
    int again = posix_fallocate(file, 0, 100000);
    fstat(file, &state);
    printf("room taken: %d, size %ld\n", again, (long)state.st_size);
}
