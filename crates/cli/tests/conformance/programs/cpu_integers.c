// Integer instructions and their flags: carries, double shifts, rotates through carry, wide products, bit searches, swaps.
#include <stdint.h>
#include <stdio.h>

#define FLAGS "pushfq\n popq %[flags]\n"

int main(void)
{
    uint64_t a, b, flags, numbers[] = { 0, 1, 0x7fffffffffffffff, 0x8000000000000000, 0x123456789abcdef, ~0ULL };
    const uint64_t mask = 0x8d5; /* overflow, sign, zero, auxiliary, parity, carry */
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j += 2) {
            a = numbers[i];
            __asm__("sub $128, %%rsp\n stc\n adcq %[b], %[a]\n" FLAGS "add $128, %%rsp"
                    : [a] "+r"(a), [flags] "=&r"(flags) : [b] "r"(numbers[j]) : "cc");
            printf("%lx %lx ", a, flags & mask);
            a = numbers[i];
            __asm__("sub $128, %%rsp\n stc\n sbbq %[b], %[a]\n" FLAGS "add $128, %%rsp"
                    : [a] "+r"(a), [flags] "=&r"(flags) : [b] "r"(numbers[j]) : "cc");
            printf("%lx %lx ", a, flags & mask);
            a = numbers[i];
            __asm__("shldq $13, %[b], %[a]\n stc\n rclq $5, %[a]\n" : [a] "+r"(a) : [b] "r"(numbers[j]) : "cc");
            printf("%lx ", a);
            __asm__("mulq %[b]" : "=a"(a), "=d"(b) : "a"(numbers[i]), [b] "r"(numbers[j]) : "cc");
            printf("%lx %lx\n", a, b);
        }
    for (int i = 1; i < 6; i++) {
        __asm__("bsfq %1, %0" : "=r"(a) : "r"(numbers[i]) : "cc");
        __asm__("bsrq %1, %0" : "=r"(b) : "r"(numbers[i]) : "cc");
        printf("%lu %lu %lx", a, b, __builtin_bswap64(numbers[i]));
        a = numbers[i];
        __asm__("btcq $40, %0\n setc %b1" : "+r"(a), "=q"(flags) : : "cc");
        printf(" %lx %lu\n", a, flags & 1);
    }
}
