// /proc/self/mem reads and writes the program's memory, also where it is read-only, and fails where nothing is mapped.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const volatile char constant[] = "a constant";

int main(void)
{
    char text[32] = "", *gone = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    volatile int value = 17;
    int got = 0, file = open("/proc/self/mem", O_RDWR);
    munmap(gone, 4096);
    pread(file, &got, sizeof got, (off_t)&value);
    printf("opened: %d, read %d, ", file >= 0, got);
    got = 99;
    pwrite(file, &got, sizeof got, (off_t)&value);
    printf("written %d\n", value);
    ssize_t count = pwrite(file, "A", 1, (off_t)constant);
    printf("read-only: %zd, %s\n", count, (const char *)constant);
    count = pread(file, text, 8, (off_t)gone);
    printf("unmapped: %zd, %s\n", count, strerror(errno));
}
