// A script whose interpreter is missing can't be run, which leaves the program as it was.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
    int file = open("lost", O_CREAT | O_WRONLY | O_CLOEXEC, 0700);
    write(file, "#!/no/such/interpreter\n", 23);
    close(file);
    execl("./lost", "lost", NULL);
    printf("%s\n", strerror(errno));
    puts("still here");
}
