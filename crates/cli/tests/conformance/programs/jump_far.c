// longjmp leaves deep recursion, several levels at once, and comes back to one place many times.
#include <setjmp.h>
#include <stdio.h>

static jmp_buf places[5];

static __attribute__((noinline)) int deeper(int depth, int back_to)
{
    volatile char frame[1000];
    frame[0] = depth;
    if (depth == 200)
        longjmp(places[back_to], 100 + back_to);
    return deeper(depth + 1, back_to) + frame[0];
}

static __attribute__((noinline)) int level(int number)
{
    volatile int tries = 0;
    int came = setjmp(places[number]);
    if (came)
        printf("level %d: came with %d, try %d\n", number, came, tries);
    if (number < 4 && !came)
        return level(number + 1);
    if (tries++ < 2)
        deeper(0, number);
    return number;
}

int main(void)
{
    volatile int count = 0;
    printf("ended at %d\n", level(0));
    setjmp(places[0]);
    if (++count < 500)
        longjmp(places[0], 1);
    int zero = setjmp(places[1]);
    if (count++ == 500)
        longjmp(places[1], 0);
    printf("came back until %d, 0 becomes %d\n", count, zero);
}
