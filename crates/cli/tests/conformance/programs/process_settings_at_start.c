// Prints what the process is set to at its start, by prctl, personality, nice and scheduling, and changes some of it.
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void line_of(const char *path)
{
    char line[256] = "none\n";
    FILE *file = fopen(path, "r");
    if (file)
        fgets(line, sizeof line, file);
    printf("%s: %s", path, line);
}

int main(void)
{
    int value = 0;
    printf("huge pages off: %d, timer slack %d, keeps capabilities %d, secure bits %d\n",
           prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0), prctl(PR_GET_TIMERSLACK), prctl(PR_GET_KEEPCAPS),
           prctl(PR_GET_SECUREBITS));
    prctl(PR_GET_CHILD_SUBREAPER, &value);
    printf("subreaper %d, ", value);
    prctl(PR_GET_TSC, &value);
    printf("clock counter %d, machine checks %d, personality %x\n", value, prctl(PR_MCE_KILL_GET, 0, 0, 0, 0),
           personality(0xffffffff));
    printf("nice %d, policy %d, input priority %ld, umask %03o\n", getpriority(PRIO_PROCESS, 0), sched_getscheduler(0),
           syscall(SYS_ioprio_get, 1, 0), umask(0));
    line_of("/proc/self/oom_score_adj");
    line_of("/proc/self/coredump_filter");
    line_of("/proc/self/attr/current");
    printf("set: %d ", prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0));
    printf("%d, nicer: %d, ", prctl(PR_SET_TIMERSLACK, 70000), nice(2) > 0);
    printf("read: %d %d\n", prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0), prctl(PR_GET_TIMERSLACK));
    struct sched_param param = { 0 };
    printf("batch: %d, ", sched_setscheduler(0, SCHED_BATCH, &param));
    printf("policy %d\n", sched_getscheduler(0));
}
