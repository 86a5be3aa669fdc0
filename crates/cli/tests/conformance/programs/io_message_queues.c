// Queues and semaphores of System V: messages by kind and order between processes, and undone changes of an ended one.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <unistd.h>

struct message { long kind; char text[32]; };

int main(void)
{
    struct message message;
    alarm(60);
    int queue = msgget(IPC_PRIVATE, 0600), set = semget(IPC_PRIVATE, 2, 0600);
    if (queue < 0 || set < 0)
        return puts(strerror(errno)), 1;
    semctl(set, 0, SETVAL, 0);
    semctl(set, 1, SETVAL, 5);
    if (fork() == 0) {
        for (int i = 0; i < 6; i++) {
            message.kind = 1 + i % 3;
            snprintf(message.text, 32, "number %d", i);
            msgsnd(queue, &message, 32, 0);
        }
        semop(set, (struct sembuf[]){ { 1, -3, SEM_UNDO } }, 1);
        printf("child: %d\n", semctl(set, 1, GETVAL));
        fflush(stdout);
        semop(set, (struct sembuf[]){ { 0, 1, 0 } }, 1);
        _exit(0);
    }
    semop(set, (struct sembuf[]){ { 0, -1, 0 } }, 1);
    wait(0);
    printf("undone: %d\n", semctl(set, 1, GETVAL));
    long kinds[] = { 2, 0, -2, 3, 0, 3, 1 };
    for (int i = 0; i < 7; i++) {
        ssize_t got = msgrcv(queue, &message, 32, kinds[i], IPC_NOWAIT);
        printf("asked for %ld: %s\n", kinds[i], got < 0 ? strerror(errno) : message.text);
    }
    printf("removed: %d ", msgctl(queue, IPC_RMID, 0));
    printf("%d\n", semctl(set, 0, IPC_RMID));
}
