// A filter makes some calls fail with the error that it names, also in children and after exec, and leaves others alone.
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char *who)
{
    printf("%s: mkdir %s, ", who, mkdir("folder", 0755) ? strerror(errno) : "done");
    printf("sethostname %s, ", sethostname("x", 1) ? strerror(errno) : "done");
    printf("rmdir %s, mode %d\n", rmdir("folder") ? strerror(errno) : "done", prctl(PR_GET_SECCOMP));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mkdir, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sethostname, 2, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV),
    };
    struct sock_fprog filter = { sizeof code / sizeof *code, code };
    alarm(60);
    if (argc > 1)
        return say(argv[1]), 0;
    printf("before: mkdir %d, ", mkdir("folder", 0755));
    printf("rmdir %d\n", rmdir("folder"));
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    printf("set: %d\n", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter));
    say("itself");
    if (fork() == 0) {
        say("child");
        _exit(0);
    }
    wait(0);
    execl(argv[0], argv[0], "after exec", NULL);
}
