// waitid with WNOWAIT leaves the dead child, which stays a zombie until it is taken.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char state_of(pid_t pid)
{
    char path[64], line[512] = "", *end;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return '-';
    fgets(line, sizeof line, file);
    fclose(file);
    end = strrchr(line, ')');
    return end ? end[2] : '?';
}

int main(void)
{
    siginfo_t info;
    alarm(60);
    pid_t child = fork();
    if (!child)
        _exit(23);
    for (int i = 0; i < 3; i++) {
        memset(&info, 0, sizeof info);
        int result = waitid(P_PID, child, &info, WEXITED | WNOWAIT);
        printf("%d: code %d, status %d, child right: %d, state %c, still there: %d\n", result, info.si_code, info.si_status,
               info.si_pid == child, state_of(child), kill(child, 0) == 0);
    }
    waitid(P_ALL, 0, &info, WEXITED);
    printf("taken: status %d, still there: %d\n", info.si_status, kill(child, 0) == 0);
    memset(&info, 0, sizeof info);
    int result = waitid(P_ALL, 0, &info, WEXITED | WNOHANG);
    printf("then %d, %s\n", result, strerror(errno));
}
