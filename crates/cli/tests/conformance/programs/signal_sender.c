// A handler is told how the signal was sent, by whom, and with which value.
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t code, from, user_right, value;

static void handler(int number, siginfo_t *info, void *context)
{
    code = info->si_code;
    from = info->si_pid;
    user_right = info->si_uid == getuid();
    value = info->si_code == SI_QUEUE ? info->si_value.sival_int : 0;
}

static void say(const char *how, pid_t expected)
{
    printf("%s: code %d, sender right: %d, user right: %d, value %d\n", how, code, from == expected, user_right, value);
    code = from = user_right = value = -1;
}

int main(void)
{
    struct sigaction act = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
    sigset_t set, old;
    alarm(60);
    sigaction(SIGUSR1, &act, 0);
    kill(getpid(), SIGUSR1);
    say("kill", getpid());
    raise(SIGUSR1);
    say("raise", getpid());
    syscall(SYS_tkill, getpid(), SIGUSR1);
    say("tkill", getpid());
    sigqueue(getpid(), SIGUSR1, (union sigval){ .sival_int = 4711 });
    say("sigqueue", getpid());
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, &old);
    pid_t child = fork();
    if (!child) {
        sigqueue(getppid(), SIGUSR1, (union sigval){ .sival_int = 815 });
        _exit(0);
    }
    waitpid(child, 0, 0);
    sigprocmask(SIG_SETMASK, &old, 0);
    say("sigqueue of a child", child);
}
