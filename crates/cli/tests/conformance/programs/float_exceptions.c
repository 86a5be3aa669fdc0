// The flags for what went wrong in computing with floats are set, can be read, and are cleared.
// flags: -lm
#include <fenv.h>
#include <math.h>
#include <stdio.h>

static void say(const char *what)
{
    int flags = fetestexcept(FE_ALL_EXCEPT);
    printf("%s:%s%s%s%s%s\n", what, flags & FE_DIVBYZERO ? " zero" : "", flags & FE_OVERFLOW ? " over" : "",
           flags & FE_UNDERFLOW ? " under" : "", flags & FE_INEXACT ? " inexact" : "",
           flags & FE_INVALID ? " invalid" : "");
    feclearexcept(FE_ALL_EXCEPT);
}

int main(void)
{
    volatile double zero = 0, one = 1, three = 3, large = 1e308, small = 1e-308, result;
    say("start");
    result = one / three;
    say("third");
    result = one / zero;
    say("division by zero");
    result = zero / zero;
    say("nothing by nothing");
    result = large * large;
    say("too large");
    result = small * small;
    say("too small");
    result = one + three;
    say("exact");
    volatile int number = (int)large;
    say("no such integer");
    feraiseexcept(FE_INVALID | FE_OVERFLOW);
    say("raised");
}
