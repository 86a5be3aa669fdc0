// The processor's time stamp grows, with and without waiting for what is before it.
#include <stdio.h>
#include <x86intrin.h>

int main(void)
{
    int back = 0, back_too = 0;
    unsigned core;
    unsigned long last = __rdtsc(), start = last;
    for (int i = 0; i < 300; i++) {
        unsigned long next = __rdtsc();
        back += next < last;
        last = next;
    }
    for (int i = 0; i < 300; i++) {
        unsigned long next = __rdtscp(&core);
        back_too += next < last;
        last = next;
    }
    printf("back %d %d, grew: %d\n", back, back_too, last > start);
}
