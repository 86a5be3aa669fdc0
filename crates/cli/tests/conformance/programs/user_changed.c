// After giving up root for another user, in all threads, the program can't read a file of root or go back.
// needs: root
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void *sleeper(void *unused)
{
    for (;;)
        pause();
}

static int threads_of_others(void)
{
    int others = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; (entry = readdir(tasks));) {
        char path[320], line[256];
        int user = 0;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "r");
        while (file && fgets(line, sizeof line, file))
            if (sscanf(line, "Uid: %d", &user) == 1)
                others += user != 65534;
        if (file)
            fclose(file);
    }
    return others;
}

int main(void)
{
    pthread_t thread;
    gid_t group = 4711;
    alarm(60);
    pthread_create(&thread, 0, sleeper, 0);
    pthread_create(&thread, 0, sleeper, 0);
    umask(0);
    write(open("secret", O_CREAT | O_WRONLY, 0600), "root's", 6);
    write(open("public", O_CREAT | O_WRONLY, 0644), "all's", 5);
    printf("groups: %d, ", setgroups(1, &group));
    printf("group: %d, ", setgid(65534));
    printf("user: %d\n", setuid(65534));
    printf("secret: %s\n", open("secret", O_RDONLY) < 0 ? strerror(errno) : "opened");
    printf("public: %s\n", open("public", O_RDONLY) < 0 ? strerror(errno) : "opened");
    printf("back: %s\n", setuid(0) ? strerror(errno) : "done");
    gid_t got[4];
    int count = getgroups(4, got);
    printf("groups %d, first %d; user %d %d; threads of other users: %d\n", count, got[0], getuid(), geteuid(),
           threads_of_others());
}
