// A child of vfork that ends at once returns to the parent at the right place, many times, also in a thread.
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void *children(void *what)
{
    int status = 0;
    volatile int sum = 0, at = 0;
    for (at = 0; at < 10; at++) {
        pid_t child = vfork();
        if (!child)
            _exit(at);
        waitpid(child, &status, 0);
        sum += WEXITSTATUS(status);
    }
    printf("%s: %d\n", (char *)what, sum);
    return 0;
}

int main(void)
{
    pthread_t thread;
    alarm(60);
    children("main");
    pthread_create(&thread, 0, children, "thread");
    pthread_join(thread, 0);
}
