// A filter's forbidden call kills by SIGSYS, only the thread if it says so.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void forbid(unsigned action)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpgid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = { sizeof code / sizeof *code, code };
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

static void *calls_it(void *unused)
{
    forbid(SECCOMP_RET_KILL_THREAD);
    write(1, "thread calls\n", 13);
    syscall(SYS_getpgid, 0);
    write(1, "thread lives\n", 13);
    return 0;
}

int main(void)
{
    int status = 0;
    alarm(20);
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* or it is left if it hangs */
        pthread_t thread;
        pthread_create(&thread, 0, calls_it, 0);
        pthread_join(thread, 0);
        write(1, "main lives\n", 11);
        syscall(SYS_exit_group, 6);
    }
    wait(&status);
    printf("thread killed: ended with %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    fflush(stdout);
    forbid(SECCOMP_RET_KILL_PROCESS);
    syscall(SYS_getpgid, 0);
    puts("not reached");
}
