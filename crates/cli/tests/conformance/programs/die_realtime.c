// A real-time signal without handler kills, by its number.
#include <signal.h>
#include <unistd.h>

int main(void)
{
    write(1, "before\n", 7);
    sigqueue(getpid(), SIGRTMIN + 5, (union sigval){ .sival_int = 1 });
    write(1, "after\n", 6);
    return 1;
}
