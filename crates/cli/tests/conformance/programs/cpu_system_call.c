// The raw system call instruction keeps all registers but three: the result, the return address and the flags.
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char after_call[];

int main(void)
{
    long result, rcx, kept = 0, flags;
    __asm__ volatile("movl %[number], %%eax\n movq $0x1111, %%rbx\n movq $0x2222, %%rdx\n movq $0x3333, %%r8\n"
                     "movq $0x4444, %%r9\n movq $0x5555, %%r10\n movq $0x6666, %%r12\n movq $0x7777, %%rsi\n"
                     "sub $128, %%rsp\n stc\n pushfq\n popq %[flags]\n"
                     "syscall\n.globl after_call\nafter_call: leaq 128(%%rsp), %%rsp\n"
                     "addq %%rbx, %[kept]\n addq %%rdx, %[kept]\n addq %%r8, %[kept]\n addq %%r9, %[kept]\n"
                     "addq %%r10, %[kept]\n addq %%r12, %[kept]\n addq %%rsi, %[kept]"
                     : "=&a"(result), "=&c"(rcx), [kept] "+&D"(kept), [flags] "=&r"(flags)
                     : [number] "i"(SYS_getpid)
                     : "rbx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r12", "memory", "cc");
    printf("result right: %d, kept %lx, carry %ld\n", result == getpid(), kept, flags & 1);
    printf("return address: %d\n", rcx == (long)after_call);
    result = syscall(9999);
    printf("unknown call: %ld\n", result);
    __asm__ volatile("syscall" : "=a"(result) : "a"(9999L) : "rcx", "r11", "memory");
    printf("raw: %ld\n", result);
}
