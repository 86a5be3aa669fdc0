// Names that threads give themselves read back from the kernel, are cut at 15 bytes, and are kept by fork.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char *who)
{
    char name[32] = "", from_file[32] = "";
    FILE *file = fopen("/proc/thread-self/comm", "r");
    prctl(PR_GET_NAME, name);
    if (file) {
        fgets(from_file, sizeof from_file, file);
        from_file[strcspn(from_file, "\n")] = 0;
        fclose(file);
    }
    printf("%s: %s, same in the file: %d\n", who, name, !strcmp(name, from_file));
    fflush(stdout);
}

static void *other(void *unused)
{
    say("thread, inherited");
    prctl(PR_SET_NAME, "worker");
    say("thread");
    return 0;
}

int main(void)
{
    pthread_t thread;
    alarm(60);
    prctl(PR_SET_NAME, "a name that is much too long");
    say("main");
    pthread_create(&thread, 0, other, 0);
    pthread_join(thread, 0);
    say("main again");
    if (fork() == 0) {
        say("child");
        _exit(0);
    }
    wait(0);
}
