// Data is moved and doubled between pipes and files without passing through the program.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

int main(void)
{
    int first[2], second[2];
    char text[64] = "", source[] = "from memory; ";
    loff_t from = 2, to = 100;
    alarm(60);
    pipe(first);
    pipe(second);
    int file = open("source", O_CREAT | O_RDWR, 0644), copy = open("copy", O_CREAT | O_RDWR, 0644);
    write(file, "0123456789abcdef", 16);
    printf("memory to pipe: %zd\n", vmsplice(first[1], &(struct iovec){ source, 13 }, 1, 0));
    printf("file to pipe: %zd, ", splice(file, &from, first[1], 0, 8, 0));
    printf("position %ld\n", (long)from);
    printf("doubled: %zd\n", tee(first[0], second[1], 1000, 0));
    read(second[0], text, 63);
    printf("second pipe: %s\n", text);
    printf("pipe to file: %zd\n", splice(first[0], 0, copy, 0, 1000, 0));
    memset(text, 0, sizeof text);
    pread(copy, text, 63, 0);
    printf("file: %s\n", text);
    from = 0;
    printf("file to file: %zd, ", copy_file_range(file, &from, copy, &to, 100, 0));
    printf("positions %ld %ld\n", (long)from, (long)to);
}
