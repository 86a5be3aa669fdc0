// Prints the name of the parent, and whether the program leads its group and session.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
    char path[64], name[64] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", getppid());
    FILE *file = fopen(path, "r");
    if (file)
        fgets(name, sizeof name, file);
    name[strcspn(name, "\n")] = 0;
    printf("parent %s, leads its group: %d, its session: %d, in its parent's group: %d, session: %d\n", name,
           getpgrp() == getpid(), getsid(0) == getpid(), getpgrp() == getpgid(getppid()), getsid(0) == getsid(getppid()));
}
