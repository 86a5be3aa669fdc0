// Tiny numbers are computed with, or taken and given as zero, as the program sets it; infinities come out right.
// flags: -lm
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <xmmintrin.h>

static unsigned long bits(double value)
{
    unsigned long result;
    memcpy(&result, &value, 8);
    return result;
}

int main(void)
{
    volatile double small = 2.2250738585072014e-308, tiny = 5e-324, zero = 0, large = 1e308;
    volatile float f = 1.17549435e-38f;
    unsigned start = _mm_getcsr();
    printf("control at start %x\n", start & ~0x3f);
    for (int i = 0; i < 4; i++) {
        _mm_setcsr(start & ~0x803f | (i & 1 ? 0x8000 : 0) | (i & 2 ? 0x40 : 0));
        float quotient = f / 4;
        unsigned single;
        memcpy(&single, &quotient, 4);
        printf("to zero %d, from zero %d: %lx %lx %x %lx\n", i & 1, i >> 1, bits(small / 2), bits(tiny * 3), single,
               bits(tiny + small));
    }
    _mm_setcsr(start);
    printf("%lx %lx %lx %lx %lx\n", bits(1 / zero), bits(large * large), bits(zero / zero), bits(-1 / zero),
           bits(sqrt(-1 + zero)));
    printf("%d %d %d\n", zero / zero == zero / zero, isless(1.0, NAN), isinf(large * 10));
}
