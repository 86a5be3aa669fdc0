// Changing the locale by variables changes how numbers and characters are read, in C and C.UTF-8.
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

int main(void)
{
    const char *names[] = { "C", "C.UTF-8", "xx_XX.no_such", "POSIX" };
    for (int i = 0; i < 4; i++) {
        wchar_t wide = 0;
        setenv("LC_ALL", names[i], 1);
        char *got = setlocale(LC_ALL, "");
        int length = mbtowc(&wide, "\xc3\xa9", 2);
        printf("%s: %s, %d bytes, %x, letter %d, point '%s', %.2f\n", names[i], got ? got : "refused", length, wide,
               iswalpha(wide) != 0, localeconv()->decimal_point, 1234.5);
    }
    unsetenv("LC_ALL");
    printf("%s, %d\n", setlocale(LC_ALL, NULL), strcoll("a", "B") > 0);
}
