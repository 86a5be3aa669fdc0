// malloc(0) gives blocks of their own that can be freed, and freeing none does nothing.
// flags: -fno-builtin
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    void *blocks[100];
    int none = 0, same = 0;
    for (int i = 0; i < 100; i++) {
        blocks[i] = malloc(0);
        none += !blocks[i];
        for (int j = 0; j < i; j++)
            same += blocks[i] == blocks[j];
    }
    for (int i = 0; i < 100; i++)
        free(blocks[i]);
    free(NULL);
    printf("none %d, same %d\n", none, same);
}
