// With three processes allowed a user of its own gets so many children and no more (threads of a helper count too).
// needs: root
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    int ends[2], children = 0, error = 0;
    char c;
    alarm(60);
    pipe(ends);
    setrlimit(RLIMIT_NPROC, &(struct rlimit){ 3, 3 });
    printf("user set: %d\n", setresuid(54321, 54321, 54321));
    fflush(stdout);
    for (int i = 0; i < 6; i++) {
        pid_t child = fork();
        if (!child) {
            close(ends[1]);
            read(ends[0], &c, 1);
            _exit(0);
        }
        if (child > 0)
            children++;
        else
            error = errno;
    }
    close(ends[1]);
    while (wait(0) > 0)
        ;
    printf("children %d, then %s\n", children, strerror(error));
}
