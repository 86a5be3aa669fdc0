/* x86-64 without any library: every load and store can be counted by hand. */
#define WORDS 4096
static volatile long array[WORDS];

static long call(long number, long a, long b, long c)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}

void _start(void)
{
    /* 4096 stores; 4096 read-modify-writes; 1000 calls and returns; 100 pushes and pops; 64 bytes by rep stosb. */
    __asm__ volatile("lea %0, %%rbx\n"
                     "mov $4096, %%rcx\n"
                     "1: movq %%rcx, (%%rbx)\n"
                     "add $8, %%rbx\n"
                     "dec %%rcx\n"
                     "jnz 1b\n"
                     "lea %0, %%rbx\n"
                     "mov $4096, %%rcx\n"
                     "2: addq $3, (%%rbx)\n"
                     "add $8, %%rbx\n"
                     "dec %%rcx\n"
                     "jnz 2b\n"
                     "mov $1000, %%rcx\n"
                     "3: call 4f\n"
                     "dec %%rcx\n"
                     "jnz 3b\n"
                     "jmp 5f\n"
                     "4: ret\n"
                     "5: mov $100, %%rcx\n"
                     "6: push %%rcx\n"
                     "pop %%rdx\n"
                     "dec %%rcx\n"
                     "jnz 6b\n"
                     "lea %0, %%rdi\n"
                     "mov $64, %%rcx\n"
                     "xor %%eax, %%eax\n"
                     "rep stosb\n"
                     :
                     : "m"(array)
                     : "rax", "rbx", "rcx", "rdx", "rdi", "memory", "cc");
    call(231, 7, 0, 0);
}
