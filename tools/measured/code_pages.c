/* Calls functions that lie on a page of code each, at random: how many calls, over how many pages. For
   docs/results/huge-pages.md. */
#include <stdio.h>
#include <stdlib.h>
__asm__(".text\n .p2align 12\n .globl pages\n pages:\n .set i, 0\n .rept 6000\n .p2align 12\n .skip (i * 192) & 0xfc0\n mov $1, %eax\n ret\n .set i, i + 1\n .endr\n .p2align 12\n");
extern char pages[];
int main(int argc, char **argv) {
    unsigned sum = 0, n = atoi(argv[1]), used = atoi(argv[2]);
    unsigned long s = 1;
    for (unsigned k = 0; k < n; k++) {
        s = s * 6364136223846793005ul + 1442695040888963407ul;
        unsigned long i = (s >> 33) % used;
        sum += ((unsigned (*)(void))(pages + i * 4096 + (i * 192 & 0xfc0)))();
    }
    printf("%u\n", sum);
}
