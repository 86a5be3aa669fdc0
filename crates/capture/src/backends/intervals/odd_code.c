/* Instructions that are translated in a way of their own, again and again. */
#include <stdint.h>
#include <string.h>

static char from[4096], to[4096];
static uint64_t words[64] = { 1, 2, 3 };
static __thread uint64_t own = 7;
static volatile uint64_t sink;

static uint64_t one(uint64_t x) { return x + 1; }
static uint64_t two(uint64_t x) { return x * 3; }
static uint64_t (*const functions[])(uint64_t) = { one, two };

/* Takes eight bytes of its caller's stack with it. */
__attribute__((naked)) static void takes_argument(void)
{
	__asm__("mov 8(%rsp), %rax\n\tret $8");
}

static uint64_t chosen(uint64_t x)
{
	switch (x % 8) {
	case 0: return words[x % 64];
	case 1: return x << 3;
	case 2: return from[x % 4096];
	case 3: return x ^ own;
	case 4: return __builtin_popcountll(x);
	case 5: return x / 7;
	case 6: return to[x % 4096];
	default: return x - 1;
	}
}

int main(void)
{
	for (uint64_t i = 0;; i++) {
		uint64_t n = i % 100 + 1, x = i;
		void *source = from, *target = to;

		__asm__ volatile("rep movsb" : "+S"(source), "+D"(target), "+c"(n) :: "memory");
		n = 5, target = to;
		__asm__ volatile("rep stosq" : "+D"(target), "+c"(n) : "a"(i) : "memory");
		n = 64, source = from, target = to;
		__asm__ volatile("repe cmpsb" : "+S"(source), "+D"(target), "+c"(n) :: "memory", "cc");
		n = 64, target = to;
		__asm__ volatile("repne scasb" : "+D"(target), "+c"(n) : "a"(3) : "memory", "cc");
		n = 0, source = from, target = to;
		__asm__ volatile("rep movsq" : "+S"(source), "+D"(target), "+c"(n) :: "memory");
		n = 9;
		__asm__ volatile("1: add $2, %0\n\tloop 1b" : "+r"(x), "+c"(n) :: "cc");
		__asm__ volatile("jrcxz 2f\n\tadd $1, %0\n2:" : "+r"(x) : "c"(i % 2) : "cc");
		__asm__ volatile("1: sub $1, %%rcx\n\tcmp $3, %%rcx\n\tloopne 1b" :: "c"(i % 9 + 9) : "cc");
		__asm__ volatile("pushq %0\n\tpopq %1" : "+m"(words[3]), "=m"(words[4]));
		__asm__ volatile("lock xaddq %0, %1\n\txchgq %0, %2" : "+r"(x), "+m"(words[5]), "+m"(words[6]) :: "cc");
		__asm__ volatile("sub $136, %%rsp\n\tpush %0\n\tcall *%1\n\tadd $136, %%rsp"
				 :: "r"(x), "r"(takes_argument) : "rax", "memory", "cc");
		/* The flags have to outlive what is added between these. */
		__asm__ volatile("cmp %1, %0\n\tmov %2, %%rax\n\tmov %%rax, %3\n\tjb 3f\n\taddq $1, %3\n3:\n\tsetc %4"
				 :: "r"(x), "r"(i + 50), "m"(words[7]), "m"(words[8]), "m"(to[9]) : "rax", "cc", "memory");
		__asm__ volatile("pushf\n\tpopf\n\tcld\n\tmovsq" : "+S"(source), "+D"(target) :: "memory");
		__asm__ volatile("mov %%fs:0, %0" : "=r"(x));
		__asm__ volatile("leal (%k1, %k1, 2), %k0\n\tmovl (%q2), %k0" : "=&r"(x) : "r"(i), "r"(words) : "memory");
		__asm__ volatile("movdqu %0, %%xmm1\n\tpaddq %1, %%xmm1\n\tmovups %%xmm1, %2"
				 :: "m"(words[10]), "m"(words[12]), "m"(words[20]) : "xmm1", "memory");
		/* It is not followed. */
		if (i % 512 == 511)
			__asm__ volatile("enter $16, $0\n\tleave" ::: "memory");
		sink += functions[i % 2](chosen(i)) + x;
		own++;
		memcpy(to + i % 1000, from, i % 300);
	}
}
