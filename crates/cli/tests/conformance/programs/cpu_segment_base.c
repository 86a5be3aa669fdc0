// A program may use the second segment register for data of its own, per thread, kept over calls and signals.
#include <asm/prctl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static void handler(int number)
{
}

static void *use(void *number)
{
    long data[8] = { 0 }, got, base = 0, wrong = 0;
    data[3] = (long)number * 1000;
    syscall(SYS_arch_prctl, ARCH_SET_GS, data);
    for (int i = 0; i < 20; i++) {
        __asm__ volatile("movq %%gs:24, %0" : "=r"(got));
        wrong += got != (long)number * 1000;
        raise(SIGUSR1);
        usleep(100);
    }
    syscall(SYS_arch_prctl, ARCH_GET_GS, &base);
    wrong += base != (long)data;
    syscall(SYS_arch_prctl, ARCH_SET_GS, 0);
    return (void *)wrong;
}

int main(void)
{
    pthread_t threads[3];
    long wrong = 0, base = 0, self;
    alarm(60);
    signal(SIGUSR1, handler);
    for (long i = 0; i < 3; i++)
        pthread_create(&threads[i], 0, use, (void *)(i + 2));
    wrong += (long)use((void *)1);
    for (int i = 0; i < 3; i++) {
        void *one;
        pthread_join(threads[i], &one);
        wrong += (long)one;
    }
    syscall(SYS_arch_prctl, ARCH_GET_FS, &base);
    __asm__ volatile("movq %%fs:0, %0" : "=r"(self));
    printf("wrong %ld, first one right: %d\n", wrong, self == base);
}
