// Who takes a robust lock after its owner's death is told, whether that was a thread or a process.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t *lock;

static void *owner(void *unused)
{
    pthread_mutex_lock(lock);
    return 0;
}

static void take(const char *after)
{
    printf("%s: %s, ", after, strerror(pthread_mutex_lock(lock)));
    printf("consistent: %s, ", strerror(pthread_mutex_consistent(lock)));
    printf("unlocked: %d\n", pthread_mutex_unlock(lock));
    fflush(stdout);
}

int main(void)
{
    pthread_t thread;
    pthread_mutexattr_t kind;
    alarm(60);
    lock = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(lock, &kind);
    take("fresh");
    pthread_create(&thread, 0, owner, 0);
    pthread_join(thread, 0);
    take("thread's end");
    for (int i = 0; i < 2; i++) {
        if (fork() == 0) {
            pthread_mutex_lock(lock);
            if (i)
                kill(getpid(), SIGKILL);
            _exit(0);
        }
        wait(0);
        take(i ? "killed process" : "process's end");
    }
}
