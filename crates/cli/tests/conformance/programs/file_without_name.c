// A file without a name gets one later by linkat, or is gone with its descriptor.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int main(void)
{
    char path[64];
    struct stat state;
    int file = open(".", O_TMPFILE | O_RDWR, 0640);
    if (file < 0)
        return printf("refused: %s\n", strerror(errno)), 0;
    write(file, "had no name", 11);
    fstat(file, &state);
    printf("names %ld, mode %o\n", (long)state.st_nlink, state.st_mode & 07777);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    int linked = linkat(AT_FDCWD, path, AT_FDCWD, "named", AT_SYMLINK_FOLLOW);
    fstat(file, &state);
    printf("linked %d, names %ld\n", linked, (long)state.st_nlink);
    int gone = open("gone", O_CREAT | O_RDWR, 0600);
    write(gone, "still readable", 14);
    unlink("gone");
    fstat(gone, &state);
    char text[32] = "";
    pread(gone, text, 31, 0);
    printf("removed: names %ld, %s\n", (long)state.st_nlink, text);
}
