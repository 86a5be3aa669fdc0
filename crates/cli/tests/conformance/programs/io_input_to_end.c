// The program reads the line on its standard input and then meets the end, as often as it tries.
// input: one line with blanks and (signs), for the program
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
    char line[256] = "", c;
    int letters = 0;
    if (fgets(line, sizeof line, stdin))
        line[strcspn(line, "\n")] = 0;
    for (char *at = line; *at; at++)
        letters += isalpha(*at) != 0;
    printf("[%s], letters %d\n", line, letters);
    int after = getchar();
    printf("after it: %d, end: %d, error: %d\n", after, feof(stdin) != 0, ferror(stdin) != 0);
    printf("raw: %zd %zd\n", read(0, &c, 1), read(0, &c, 1));
}
