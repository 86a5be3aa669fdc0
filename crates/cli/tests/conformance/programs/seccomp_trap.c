// A filter's trap raises SIGSYS with the call's number and address, and the handler gives the result.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static volatile sig_atomic_t caught, number_right, place_right;

static void on_call(int number, siginfo_t *info, void *context)
{
    ucontext_t *state = context;
    caught++;
    number_right = info->si_syscall == SYS_getpgid && info->si_code == 1;
    place_right = info->si_call_addr == (void *)state->uc_mcontext.gregs[REG_RIP];
    state->uc_mcontext.gregs[REG_RAX] = 1000 + state->uc_mcontext.gregs[REG_RDI];
}

int main(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpgid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = { sizeof code / sizeof *code, code };
    alarm(60);
    sigaction(SIGSYS, &(struct sigaction){ .sa_sigaction = on_call, .sa_flags = SA_SIGINFO }, 0);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
    long first = syscall(SYS_getpgid, 1), second = syscall(SYS_getpgid, 22);
    printf("results %ld %ld, caught %d, number %d, place %d\n", first, second, caught, number_right, place_right);
}
