// Threads share folder, umask and descriptors until one takes its own by unshare.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void *alone(void *number)
{
    printf("unshare folder: %s\n", unshare(CLONE_FS) ? strerror(errno) : "done");
    printf("unshare files: %s\n", unshare(CLONE_FILES) ? strerror(errno) : "done");
    chdir("inside");
    umask(070);
    close(*(int *)number);
    close(open("of_the_thread", O_CREAT | O_WRONLY, 0666));
    return 0;
}

int main(void)
{
    pthread_t thread;
    char folder[4096];
    int number = dup2(0, 50);
    alarm(60);
    umask(022);
    mkdir("inside", 0755);
    pthread_create(&thread, 0, alone, &number);
    pthread_join(thread, 0);
    printf("main's folder: %s, umask %03o, descriptor open: %d\n",
           strcmp(strrchr(getcwd(folder, sizeof folder), '/'), "/inside") ? "its own" : "inside", umask(0),
           fcntl(50, F_GETFD) >= 0);
}
