/* Heap, mappings, threads, children, signals: what its argument says; then exit code 7. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile char shared[4][1 << 16];

static void *thread(void *which)
{
    for (int round = 0; round < 20; round++)
        for (int i = 0; i < 1 << 16; i += 64)
            shared[(long)which][i]++;
    return NULL;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "heap") == 0) {
        char *small = malloc(5000), *large = malloc(1 << 20);
        memset(small, 1, 5000);
        memset(large, 1, 1 << 20);
        large = realloc(large, 2 << 20);
        free(large);
    } else if (strcmp(what, "maps") == 0) {
        char *at = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        at[70000] = 1;
        mprotect(at, 4096, PROT_READ);
        mprotect(at, 4096, PROT_READ | PROT_WRITE); /* one mapping again: mremap takes no two */
        madvise(at, 1 << 20, MADV_DONTNEED);
        at = mremap(at, 1 << 20, 2 << 20, MREMAP_MAYMOVE);
        at[0x1f0000]++;
        munmap(at, 2 << 20);
    } else if (strcmp(what, "threads") == 0) {
        pthread_t threads[4];
        for (long i = 0; i < 4; i++)
            pthread_create(&threads[i], NULL, thread, (void *)i);
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
    } else if (strcmp(what, "fork") == 0) {
        int status;
        if (fork() == 0) {
            shared[0][0] = 1;
            _exit(3);
        }
        wait(&status);
        if (WEXITSTATUS(status) != 3)
            return 1;
    } else if (strcmp(what, "exec") == 0) {
        execl("/bin/sh", "sh", "-c", "exit 5", NULL);
        return 1;
    } else if (strcmp(what, "close") == 0) {
        for (int i = 3; i < 4096; i++)
            close(i);
        shared[0][0] = 1;
    } else if (strcmp(what, "abort") == 0) {
        abort();
    } else if (strcmp(what, "segv") == 0) {
        *(volatile int *)0 = 1;
    } else if (strcmp(what, "term") == 0) {
        kill(getpid(), SIGTERM);
    } else if (strcmp(what, "spin") == 0) {
        for (;;)
            shared[0][0]++;
    }
    return 7;
}
