// Writing beyond the limit of a file's size raises SIGXFSZ and fails with EFBIG, after writing what fits.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static volatile sig_atomic_t came;

static void handler(int number)
{
    came++;
}

int main(void)
{
    char text[3000];
    memset(text, 'f', sizeof text);
    puts("start");
    fflush(stdout);
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    int file = open("limited", O_CREAT | O_WRONLY, 0644), result[4];
    signal(SIGXFSZ, handler);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 5000, 8000 });
    for (int i = 0; i < 3; i++)
        result[i] = write(file, text, sizeof text);
    int error = errno;
    result[3] = ftruncate(file, 6000);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 8000, 8000 });
    printf("%d %d %d %d, %s, signals %d\n", result[0], result[1], result[2], result[3], strerror(error), came);
    fflush(stdout);
    signal(SIGXFSZ, SIG_DFL);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 5000, 8000 });
    write(file, text, sizeof text);
    puts("not reached");
}
