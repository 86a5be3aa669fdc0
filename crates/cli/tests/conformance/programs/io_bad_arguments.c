// Calls with bad addresses, descriptors and numbers fail with the right errors, and do nothing else.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void say(const char *what, long result)
{
    printf("%s: %ld, %s\n", what, result, result < 0 ? strerror(errno) : "done");
}

int main(void)
{
    int ends[2];
    char c;
    pipe(ends);
    write(ends[1], "some text", 9);
    char *edge = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(edge + 4096, 4096);
    memset(edge, 'e', 4096);
    say("read to nowhere", syscall(SYS_read, ends[0], 8L, 5L));
    say("write from nowhere", syscall(SYS_write, ends[1], 8L, 5L));
    say("open of no name", syscall(SYS_open, 16L, O_RDONLY, 0));
    say("open of a name without end", syscall(SYS_open, edge + 4000, O_RDONLY, 0));
    say("pipe to nowhere", syscall(SYS_pipe, 8L));
    say("stat to nowhere", syscall(SYS_stat, ".", 8L));
    say("time to nowhere", syscall(SYS_clock_gettime, CLOCK_REALTIME, 8L));
    say("bad clock", syscall(SYS_clock_gettime, 9999L, edge));
    say("bad descriptor", read(777, &c, 1));
    say("negative descriptor", write(-1, &c, 1));
    say("wrong direction", read(ends[1], &c, 1));
    say("seek in a pipe", lseek(ends[0], 0, SEEK_SET));
    say("socket call on a pipe", send(ends[1], "x", 1, 0));
    say("bad signal", kill(getpid(), 999));
    say("bad process", kill(99999999, 0));
    say("handler for SIGKILL", syscall(SYS_rt_sigaction, SIGKILL, edge, 0L, 8L));
    say("dup of none", dup(900));
    say("dup2 too high", dup2(0, 100000000));
    say("bad advice", madvise(edge, 4096, 9999));
    say("unmap at an odd address", munmap(edge + 1, 4096));
    say("sleep for a bad time", nanosleep(&(struct timespec){ 0, 2000000000 }, 0));
    say("no such call", syscall(8888));
    say("still in the pipe", read(ends[0], edge, 100));
}
