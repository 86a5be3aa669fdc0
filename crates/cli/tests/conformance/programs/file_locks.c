// Locks on files: by process, lost at any close; by open file, shared with children; and of whole files.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

static int file;

static const char *lock(int command, short type, int start)
{
    struct flock region = { .l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = 10 };
    return fcntl(file, command, &region) ? strerror(errno) : "done";
}

static void child(const char *when)
{
    fflush(stdout);
    if (fork() == 0) {
        struct flock region = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 10 };
        fcntl(file, F_GETLK, &region);
        printf("%s, child: held by its parent %d, ", when, region.l_type != F_UNLCK && region.l_pid == getppid());
        printf("same %s, ", lock(F_SETLK, F_WRLCK, 5));
        printf("read %s, ", lock(F_SETLK, F_RDLCK, 5));
        printf("other %s, ", lock(F_SETLK, F_WRLCK, 50));
        printf("by open file %s, ", lock(F_OFD_SETLK, F_WRLCK, 80));
        int again = open("locked", O_RDWR);
        printf("whole, same open file %d, ", flock(file, LOCK_EX | LOCK_NB));
        printf("another %s\n", flock(again, LOCK_EX | LOCK_NB) ? strerror(errno) : "done");
        fflush(stdout);
        _exit(0);
    }
    wait(0);
}

int main(void)
{
    alarm(60);
    file = open("locked", O_CREAT | O_RDWR, 0644);
    printf("own: %s, ", lock(F_SETLK, F_WRLCK, 0));
    printf("by open file: %s, ", lock(F_OFD_SETLK, F_WRLCK, 80));
    printf("whole: %d\n", flock(file, LOCK_EX));
    child("exclusive");
    printf("again: %s\n", lock(F_SETLK, F_RDLCK, 0));
    child("shared");
    close(open("locked", O_RDONLY));
    child("after another close");
}
