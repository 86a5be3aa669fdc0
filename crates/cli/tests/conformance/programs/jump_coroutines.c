// Coroutines on stacks of their own switch by swapcontext a thousand times, keep their locals and floats, and end in order.
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

enum { COUNT = 5, TURNS = 200 };
static ucontext_t scheduler, contexts[COUNT];
static int ended;
static double sums[COUNT];

static void run(int number, int step)
{
    double sum = number;
    char local[500];
    for (int turn = 0; turn < TURNS; turn++) {
        local[turn] = turn;
        sum += step * 0.5;
        swapcontext(&contexts[number], &scheduler);
        sum += local[turn] == (char)turn;
    }
    sums[number] = sum;
    ended++;
}

int main(void)
{
    int switches = 0;
    for (int i = 0; i < COUNT; i++) {
        getcontext(&contexts[i]);
        contexts[i].uc_stack.ss_sp = malloc(32768);
        contexts[i].uc_stack.ss_size = 32768;
        contexts[i].uc_link = &scheduler;
        makecontext(&contexts[i], (void (*)(void))run, 2, i, i + 1);
    }
    while (ended < COUNT)
        for (int i = 0; i < COUNT; i++) {
            swapcontext(&scheduler, &contexts[i]);
            switches++;
        }
    printf("switches %d, sums", switches);
    for (int i = 0; i < COUNT; i++)
        printf(" %g", sums[i]);
    printf("\n");
}
