// At the start of main all signals have their default, none is blocked or pending, also as the raw calls tell it.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *mask_of_thread(void *unused)
{
    unsigned long mask = 0;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, 0, &mask, 8);
    printf("mask of a thread: %#lx\n", mask);
    return 0;
}

int main(void)
{
    struct { unsigned long handler, flags, restorer, mask; } act;
    unsigned long mask = 0, pending = 0;
    pthread_t thread;
    stack_t stack;
    for (int i = 1; i < 64; i++) { /* Valgrind needs 64 for itself */
        act.handler = 0;
        if (syscall(SYS_rt_sigaction, i, 0, &act, 8) < 0)
            printf("%d can't be read\n", i);
        else if (act.handler)
            printf("%d is %s\n", i, act.handler == 1 ? "ignored" : "handled");
    }
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, 0, &mask, 8);
    syscall(SYS_rt_sigpending, &pending, 8);
    sigaltstack(0, &stack);
    printf("mask %#lx, pending %#lx, alternative stack: %d\n", mask, pending, stack.ss_flags != SS_DISABLE);
    pthread_create(&thread, 0, mask_of_thread, 0);
    pthread_join(thread, 0);
}
