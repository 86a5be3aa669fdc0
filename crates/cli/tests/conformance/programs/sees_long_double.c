// Computes with long doubles, whose 64 bits of fraction are printed (Valgrind keeps 53 of them).
// flags: -lm
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    volatile long double one = 1, three = 3, sum = 0, large = LDBL_MAX;
    for (int i = 1; i < 30; i++)
        sum += one / i / i;
    printf("%La %La %La\n", one / three, sum, sqrtl(three));
    printf("%.25Lg %Lg\n", one + LDBL_EPSILON, large);
    printf("%La %d\n", strtold("0.1", 0), one + LDBL_EPSILON > one);
    printf("%La %La\n", (long double)0x7fffffffffffffffL, sinl(one));
}
