// The umask and chmod give files their rights, set times read back, and a removed working folder has no name.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void say(const char *name)
{
    struct stat state;
    stat(name, &state);
    printf("%s: %04o, own: %d\n", name, state.st_mode & 07777, state.st_uid == getuid());
}

int main(void)
{
    char folder[4096];
    struct stat state;
    int masks[] = { 0, 022, 077, 0777 };
    for (int i = 0; i < 4; i++) {
        char name[16];
        umask(masks[i]);
        snprintf(name, sizeof name, "mask%d", i);
        close(open(name, O_CREAT | O_WRONLY, 0666));
        say(name);
        snprintf(name, sizeof name, "folder%d", i);
        mkdir(name, 0777);
        say(name);
    }
    umask(022);
    chmod("mask0", 06751);
    say("mask0");
    utimensat(AT_FDCWD, "mask1", (struct timespec[]){ { 1000000000, 123456789 }, { 1500000000, 5 } }, 0);
    stat("mask1", &state);
    printf("times %ld.%09ld ", state.st_atim.tv_sec, state.st_atim.tv_nsec);
    printf("%ld.%09ld\n", state.st_mtim.tv_sec, state.st_mtim.tv_nsec);
    mkdir("leaving", 0755);
    chdir("leaving");
    rmdir("../leaving");
    printf("no name: %s\n", getcwd(folder, sizeof folder) ? "has one" : strerror(errno));
    printf("no file in it: %s\n", open("x", O_CREAT | O_WRONLY, 0644) < 0 ? strerror(errno) : "made");
    int parent = open("..", O_RDONLY | O_DIRECTORY);
    printf("back: %d\n", fchdir(parent));
}
