// exec with an argument, or with arguments together, longer than allowed fails with E2BIG and leaves the program as it was.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    enum { ONE = 200 << 10, EACH = 100 << 10, COUNT = 80 };
    static char *arguments[COUNT + 2];
    char *text = malloc(ONE);
    alarm(60);
    if (argc > 1)
        return printf("ran with %d arguments\n", argc), 0;
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    memset(text, 'a', ONE);
    text[ONE - 1] = 0;
    execl(argv[0], argv[0], text, NULL);
    printf("one: %s\n", strerror(errno));
    text[EACH - 1] = 0;
    arguments[0] = argv[0];
    for (int i = 0; i < COUNT; i++)
        arguments[i + 1] = text;
    execv(argv[0], arguments);
    printf("together: %s\n", strerror(errno));
    arguments[3] = NULL;
    execv(argv[0], arguments);
    printf("few: %s\n", strerror(errno));
}
