// main finds its arguments, names, variables, stack and random bytes as the kernel laid them out.
// args: first "second one" ""
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

int main(int argc, char **argv, char **envp)
{
    printf("%d arguments, end marked: %d, variables behind: %d, environ: %d\n", argc, argv[argc] == NULL,
           envp == argv + argc + 1, environ == envp);
    for (int i = 1; i < argc; i++)
        printf("[%s] in order: %d\n", argv[i], argv[i] == argv[i - 1] + strlen(argv[i - 1]) + 1);
    printf("name: %d, short name: %d\n", program_invocation_name == argv[0],
           program_invocation_short_name == strrchr(argv[0], '/') + 1);
    printf("run as: %d, page size %ld %d, random bytes: %d\n", !strcmp((char *)getauxval(AT_EXECFN), argv[0]),
           getauxval(AT_PAGESZ), getpagesize(), getauxval(AT_RANDOM) != 0);
    printf("own headers: %d, start: %d\n", getauxval(AT_PHDR) != 0, getauxval(AT_ENTRY) != 0);
    char c;
    printf("stack aligned: %d, below the arguments: %d\n", (long)__builtin_frame_address(0) % 16 == 0, &c < (char *)argv);
}
