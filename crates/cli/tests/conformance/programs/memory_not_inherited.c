// A child finds memory zeroed or missing that was marked so.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static char *map(int advice)
{
    char *at = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(at, 5, 1 << 20);
    printf("advice %d: %d\n", advice, madvise(at, 1 << 20, advice));
    return at;
}

int main(void)
{
    int status = 0;
    alarm(60);
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    char *wiped = map(MADV_WIPEONFORK), *gone = map(MADV_DONTFORK), *kept = map(MADV_NORMAL);
    fflush(stdout);
    for (int touch = 0; touch < 2; touch++) {
        if (fork() == 0) {
            printf("child: wiped %d, kept %d\n", wiped[1 << 19], kept[1 << 19]);
            fflush(stdout);
            _exit(touch ? gone[5] : 1);
        }
        wait(&status);
        printf("ended with %d, killed by %d\n", WEXITSTATUS(status), WTERMSIG(status));
        fflush(stdout);
    }
    printf("parent: %d %d %d\n", wiped[9], gone[9], kept[9]);
}
