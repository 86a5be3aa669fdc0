// A filter put on all threads at once, which kills for all but what these need, harms no thread of the program.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile int started, state;

static void *other(void *unused)
{
    started = 1;
    while (state < 1)
        __asm__ volatile("pause");
    write(1, "other thread\n", 13);
    state = 2;
    for (;;)
        __asm__ volatile("pause");
}

int main(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = { sizeof code / sizeof *code, code };
    pthread_t thread;
    alarm(60);
    pthread_create(&thread, 0, other, 0);
    while (!started)
        usleep(500);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter))
        return 1;
    state = 1;
    for (volatile long i = 0; i < 3000000 || state < 2; i++)
        ;
    write(1, "main\n", 5);
    syscall(SYS_exit_group, 3);
}
