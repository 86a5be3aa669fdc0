// The C library's streams: reading and writing one file, positions, pushing back, appending, in memory, wide characters.
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

int main(void)
{
    char line[64], *text = NULL, *long_line = NULL;
    size_t length = 0, room = 0;
    FILE *file = fopen("stream", "w+");
    for (int i = 0; i < 2000; i++)
        fprintf(file, "line %04d\n", i);
    fseek(file, 10 * 1234, SEEK_SET);
    fgets(line, sizeof line, file);
    printf("%s", line);
    ungetc('Q', file);
    printf("pushed back: %c, ", getc(file));
    printf("at %ld\n", ftell(file));
    fseek(file, 5, SEEK_SET);
    fputs("WXYZ", file);
    fflush(file);
    rewind(file);
    fgets(line, sizeof line, file);
    printf("%s", line);
    freopen("stream", "a+", file);
    fputs("appended", file);
    fseek(file, -15, SEEK_END);
    printf("getline: %zd\n", getline(&long_line, &room, file));
    fclose(file);
    file = open_memstream(&text, &length);
    for (int i = 0; i < 3000; i++)
        fprintf(file, "%d,", i);
    fclose(file);
    printf("in memory: %zu, %.10s...%s\n", length, text, text + length - 10);
    file = fmemopen("12 0x1f word 3.5", 16, "r");
    int a, b;
    double c;
    printf("read %d, ", fscanf(file, "%d %i %63s %lf", &a, &b, line, &c));
    printf("%d %d %s %g\n", a, b, line, c);
    setlocale(LC_ALL, "C.UTF-8");
    file = fopen("wide", "w");
    fwprintf(file, L"%lc%ls\n", 0x20ac, L"\xe9t\xe9");
    fclose(file);
}
