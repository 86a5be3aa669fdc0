// What is written to a shared file mapping is in the file, and the other way round, also for a child and after msync.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    char text[32] = "";
    alarm(60);
    int file = open("mapped", O_CREAT | O_RDWR, 0644);
    ftruncate(file, 20000);
    char *map = mmap(0, 20000, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    char *again = mmap(0, 20000, PROT_READ, MAP_SHARED, file, 0);
    strcpy(map + 5000, "by the mapping");
    pread(file, text, 14, 5000);
    printf("read: %s, seen in the other mapping: %s\n", text, again + 5000);
    pwrite(file, "by the file", 11, 9000);
    printf("mapped: %s\n", map + 9000);
    fflush(stdout);
    if (fork() == 0) {
        strcpy(map + 15000, "by the child");
        _exit(0);
    }
    wait(0);
    printf("then: %s, msync %d, ", again + 15000, msync(map, 20000, MS_SYNC));
    ftruncate(file, 9005);
    ftruncate(file, 20000);
    printf("cut: %s, %d\n", map + 9000, map[15000]);
    munmap(map, 20000);
    munmap(again, 20000);
}
