// Symbolic links are followed, read, not followed where told, and end in ELOOP where they go in circles.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int main(void)
{
    char name[32], target[32] = "";
    struct stat state;
    int depth = 0;
    symlink("second", "first");
    symlink("first", "second");
    symlink("itself", "itself");
    printf("circle: %s\n", open("first", O_RDONLY) < 0 ? strerror(errno) : "opened");
    printf("itself: %s\n", stat("itself/x", &state) ? strerror(errno) : "found");
    printf("resolved: %s\n", realpath("first", NULL) ? "done" : strerror(errno));
    close(open("link0", O_CREAT | O_WRONLY, 0644));
    for (int i = 1; i < 60; i++) {
        snprintf(name, sizeof name, "link%d", i);
        snprintf(target, sizeof target, "link%d", i - 1);
        symlink(target, name);
        if (stat(name, &state) == 0)
            depth = i;
    }
    printf("followed up to %d\n", depth);
    memset(target, 0, sizeof target);
    ssize_t length = readlink("link7", target, 5);
    printf("length %zd, target %s\n", length, target);
    printf("not followed: %s\n", open("link7", O_RDONLY | O_NOFOLLOW) < 0 ? strerror(errno) : "opened");
    lstat("link7", &state);
    printf("is a link: %d, size %ld\n", S_ISLNK(state.st_mode), (long)state.st_size);
    symlink("nowhere", "dangling");
    printf("dangling: %s, ", open("dangling", O_RDONLY) < 0 ? strerror(errno) : "opened");
    printf("made through it: %s\n", open("dangling", O_CREAT | O_WRONLY, 0600) < 0 ? strerror(errno) : "done");
}
