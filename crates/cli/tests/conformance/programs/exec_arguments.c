// Odd arguments and variables arrive as given: empty, long, with blanks, quotes, line ends, and bytes that are no UTF-8.
// args: a b "c d" --help -- -e
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void show(const char *text)
{
    printf(" [");
    for (int i = 0; text[i] && i < 20; i++)
        printf(text[i] >= ' ' && text[i] < 127 ? "%c" : "\\%02x", (unsigned char)text[i]);
    printf("]%zu", strlen(text));
}

int main(int argc, char **argv)
{
    alarm(60);
    for (int i = 1; i < argc; i++)
        show(argv[i]);
    printf("\n");
    if (getenv("ODD")) {
        show(getenv("ODD"));
        show(getenv("EMPTY"));
        printf("\n");
        return 0;
    }
    fflush(stdout);
    char *longest = malloc(100001);
    memset(longest, 'L', 100000);
    longest[100000] = 0;
    char *arguments[] = { argv[0], "", " two  blanks ", "\"'$HOME`\\", "line\nend\t", "\xff\xfe\x80", "*", longest, NULL };
    setenv("ODD", "a=b=\xc3\xa4\n;", 1);
    setenv("EMPTY", "", 1);
    execv(argv[0], arguments);
}
