// A memory file keeps its seals: no growing, shrinking or writing after them, and mappings hold what it held.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void say(const char *what, int failed)
{
    printf("%s: %s\n", what, failed ? strerror(errno) : "done");
}

int main(void)
{
    struct stat size;
    char link[128] = "";
    int file = memfd_create("sealed", MFD_ALLOW_SEALING | MFD_CLOEXEC);
    say("size", ftruncate(file, 100000));
    char *map = mmap(0, 100000, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    strcpy(map + 70000, "in the mapping");
    say("seal against writing while mapped", fcntl(file, F_ADD_SEALS, F_SEAL_WRITE));
    say("seal against size", fcntl(file, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK));
    say("grow", ftruncate(file, 200000));
    say("shrink", ftruncate(file, 50000));
    munmap(map, 100000);
    say("seal against writing", fcntl(file, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL));
    say("write", write(file, "x", 1) < 0);
    say("map for writing", mmap(0, 100000, PROT_WRITE, MAP_SHARED, file, 0) == MAP_FAILED);
    say("another seal", fcntl(file, F_ADD_SEALS, F_SEAL_GROW));
    map = mmap(0, 100000, PROT_READ, MAP_SHARED, file, 0);
    fstat(file, &size);
    printf("seals %x, size %ld, %s\n", fcntl(file, F_GET_SEALS), (long)size.st_size, map == MAP_FAILED ? "" : map + 70000);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    readlink(path, link, sizeof link - 1);
    printf("%s\n", link);
}
