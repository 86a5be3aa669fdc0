// exec without any argument gives the new program one empty argument, as the kernel has done since 5.18.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    alarm(60);
    if (getenv("AGAIN")) {
        printf("%d arguments, the first is empty: %d\n", argc, argv[0] && !*argv[0]);
        return 2;
    }
    putenv("AGAIN=1");
    execve(argv[0], (char *[]){ NULL }, environ);
    return 1;
}
