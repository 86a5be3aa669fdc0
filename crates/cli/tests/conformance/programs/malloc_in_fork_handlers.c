// Handlers of pthread_atfork may allocate and free, in parent and child, and blocks from before are good in both.
// flags: -fno-builtin
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char *before, *in_parent, *in_child;

static void prepare(void) { before = strdup("allocated before the fork"); }
static void parent(void) { in_parent = malloc(100000); memset(in_parent, 'p', 100000); }
static void child(void) { in_child = malloc(200000); memset(in_child, 'c', 200000); free(malloc(50)); }

int main(void)
{
    char *text = strdup("from long before");
    alarm(60);
    pthread_atfork(prepare, parent, child);
    if (fork() == 0) {
        text = realloc(text, 1 << 20);
        printf("child: %s, %s, %c, %d\n", before, text, in_child[199999], in_parent != NULL);
        free(before);
        free(text);
        free(in_child);
        fflush(stdout);
        _exit(0);
    }
    wait(0);
    text = realloc(text, 1 << 20);
    printf("parent: %s, %s, %c, %d\n", before, text, in_parent[99999], in_child != NULL);
    free(before);
    free(text);
    free(in_parent);
}
