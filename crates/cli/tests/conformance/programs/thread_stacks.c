// Threads run on stacks of the least size, of a size asked for, and on memory given by the program, with a guard below.
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char *given;
static volatile sig_atomic_t guarded;
static sigjmp_buf back;

static void on_fault(int number)
{
    guarded++;
    siglongjmp(back, 1);
}

static void *on_stack(void *expected)
{
    char here;
    size_t size, guard;
    void *low;
    pthread_attr_t attributes;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_getguardsize(&attributes, &guard);
    int inside = &here > (char *)low && &here < (char *)low + size;
    if (guard && !sigsetjmp(back, 1))
        *((volatile char *)low - 1) = 1;
    printf("inside %d, at least as large: %d, guard %zu, faulted %d, given: %d\n", inside, size >= (size_t)expected, guard,
           guarded, low == given);
    pthread_attr_destroy(&attributes);
    return 0;
}

int main(void)
{
    size_t sizes[] = { PTHREAD_STACK_MIN, 65536, 1 << 20 };
    pthread_t thread;
    pthread_attr_t attributes;
    alarm(60);
    signal(SIGSEGV, on_fault);
    for (int i = 0; i < 4; i++) {
        pthread_attr_init(&attributes);
        if (i < 3)
            pthread_attr_setstacksize(&attributes, sizes[i]);
        else
            pthread_attr_setstack(&attributes, given = aligned_alloc(4096, 131072), 131072);
        pthread_create(&thread, &attributes, on_stack, (void *)(i < 3 ? sizes[i] : 131072));
        pthread_join(thread, 0);
        fflush(stdout);
    }
}
