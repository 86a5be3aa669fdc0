// A process may enter its own mount namespace again, which one that shares its folder with threads may not.
// needs: root
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    const char *names[] = { "mnt", "uts", "ipc", "net", "pid", "user" };
    for (int i = 0; i < 6; i++) {
        char path[64];
        snprintf(path, sizeof path, "/proc/self/ns/%s", names[i]);
        int file = open(path, O_RDONLY);
        printf("%s: %s\n", names[i], setns(file, 0) ? strerror(errno) : "entered");
    }
}
