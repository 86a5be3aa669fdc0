// /proc/self/maps lists the program's own file with one executable mapping, and other mappings as they are made.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static void say(const char *when, const char *name, char *own)
{
    char line[4352], rights[8], path[4096];
    unsigned long start, end;
    int executable = 0, of_file = 0, found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps)) {
        *path = 0;
        sscanf(line, "%lx-%lx %7s %*x %*x:%*x %*u %4095[^\n]", &start, &end, rights, path);
        if (!strcmp(path, name)) {
            of_file++;
            executable += rights[2] == 'x';
        }
        if (start <= (unsigned long)own && (unsigned long)own < end)
            found = rights[0] == 'r' ? rights[1] == 'w' ? 2 : 1 : 3;
    }
    fclose(maps);
    printf("%s: of the file %d, executable %d, own mapping %d\n", when, of_file, executable, found);
}

int main(int argc, char **argv)
{
    char *own = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    say("writable", argv[0], own);
    mprotect(own, 4096, PROT_READ);
    say("readable", argv[0], own);
    mprotect(own, 4096, PROT_NONE);
    say("forbidden", argv[0], own);
    munmap(own, 65536);
    say("unmapped", argv[0], own);
}
