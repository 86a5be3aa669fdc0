// A program without any library, its own start and raw calls only, finds its arguments and memory and ends with its code.
// flags: -static -nostdlib -fno-stack-protector
// args: one two

static long call(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    __asm__ volatile("syscall" : "+a"(number) :
                     "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
    return number;
}

static void say(const char *text)
{
    long length = 0;
    while (text[length])
        length++;
    call(1, 1, (long)text, length, 0, 0, 0);
    call(1, 1, (long)"\n", 1, 0, 0, 0);
}

void begin(long *stack)
{
    char **arguments = (char **)(stack + 1);
    for (int i = 1; i < stack[0]; i++)
        say(arguments[i]);
    char *map = (char *)call(9, 0, 1 << 20, 3, 0x22, -1, 0), *brk = (char *)call(12, 0, 0, 0, 0, 0, 0);
    int good = 1;
    for (int i = 0; i < 1 << 20; i += 4096)
        map[i] = i >> 12;
    for (int i = 0; i < 1 << 20; i += 4096)
        good &= map[i] == (char)(i >> 12);
    good &= call(12, (long)brk + 8192, 0, 0, 0, 0, 0) == (long)brk + 8192;
    brk[8000] = 7;
    long child = call(57, 0, 0, 0, 0, 0, 0);
    if (!child)
        call(60, 3, 0, 0, 0, 0, 0);
    int status = 0;
    call(61, child, (long)&status, 0, 0, 0, 0);
    say(good && brk[8000] == 7 && status == 3 << 8 ? "good" : "bad");
    call(231, 18, 0, 0, 0, 0, 0);
}

__asm__(".globl _start\n_start: xor %ebp, %ebp\n mov %rsp, %rdi\n and $-16, %rsp\n call begin\n hlt");
