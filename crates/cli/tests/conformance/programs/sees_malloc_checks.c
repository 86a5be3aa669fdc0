// Freeing twice and freeing what is no block kill the program with glibc's messages.
// flags: -fno-builtin
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    static char no_block[64] __attribute__((aligned(16)));
    alarm(60);
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    for (int what = 0; what < 3; what++) {
        int status = 0;
        if (fork() == 0) {
            char *volatile block = malloc(24), *volatile large = malloc(3000), *volatile behind = malloc(3000);
            if (what == 0) {
                free(block);
                free(block);
            } else if (what == 1) {
                free(large);
                free(large);
            } else {
                free(no_block + 16);
            }
            _exit(0);
        }
        wait(&status);
        printf("ended with %d, killed by %d\n", WEXITSTATUS(status), WTERMSIG(status));
        fflush(stdout);
    }
}
