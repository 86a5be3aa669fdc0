// Locks of all kinds: readers together, writers alone, recursive ones counted, errors told, and spinning.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static long a, b, torn, spun;

static void *work(void *number)
{
    for (int i = 0; i < 400; i++) {
        if ((i + (long)number) % 4 == 0) {
            pthread_rwlock_wrlock(&rw);
            a++;
            b++;
        } else {
            pthread_rwlock_rdlock(&rw);
            if (a != b)
                __atomic_add_fetch(&torn, 1, __ATOMIC_RELAXED);
        }
        pthread_rwlock_unlock(&rw);
        pthread_spin_lock(&spin);
        spun++;
        pthread_spin_unlock(&spin);
    }
    return 0;
}

int main(void)
{
    pthread_t threads[4];
    pthread_mutexattr_t kind;
    pthread_mutex_t recursive, checking;
    alarm(60);
    pthread_spin_init(&spin, 0);
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], 0);
    printf("written %ld %ld, torn %ld, spun %ld\n", a, b, torn, spun);
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&recursive, &kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutexattr_setprotocol(&kind, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&checking, &kind);
    for (int i = 0; i < 3; i++)
        printf("recursive %d ", pthread_mutex_lock(&recursive));
    printf("checking %d, ", pthread_mutex_lock(&checking));
    printf("again %s, ", strerror(pthread_mutex_lock(&checking)));
    printf("unlocked %d, ", pthread_mutex_unlock(&checking));
    printf("twice %s\n", strerror(pthread_mutex_unlock(&checking)));
}
