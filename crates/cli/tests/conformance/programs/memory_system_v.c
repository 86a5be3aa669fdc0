// A segment shared between parent and child is attached, written by both, detached and gone after removal.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    struct shmid_ds state;
    alarm(60);
    int id = shmget(IPC_PRIVATE, 300000, IPC_CREAT | 0600);
    char *at = shmat(id, 0, 0);
    if (id < 0 || at == (void *)-1)
        return puts(strerror(errno)), 1;
    strcpy(at + 200000, "by the parent");
    if (fork() == 0) {
        char *mine = shmat(id, 0, 0);
        printf("child reads %s, twice attached: %d\n", at + 200000, mine != at);
        strcpy(mine + 100000, "by the child");
        fflush(stdout);
        _exit(0);
    }
    wait(0);
    shmctl(id, IPC_STAT, &state);
    printf("parent reads %s, attached %ld, size %zu\n", at + 100000, (long)state.shm_nattch, state.shm_segsz);
    char *only_read = shmat(id, 0, SHM_RDONLY);
    printf("read-only: %s\n", only_read + 100000);
    printf("detached %d ", shmdt(at));
    printf("%d, ", shmdt(only_read));
    printf("removed %d\n", shmctl(id, IPC_RMID, 0));
    printf("again: %s\n", shmat(id, 0, 0) == (void *)-1 ? strerror(errno) : "attached");
}
