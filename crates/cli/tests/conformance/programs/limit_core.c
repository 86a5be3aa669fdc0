// With a limit of 0 a child that aborts leaves no core file, and says so in its status.
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    int status = 0, files = 0;
    alarm(60);
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    if (fork() == 0)
        abort();
    wait(&status);
    DIR *folder = opendir(".");
    for (struct dirent *entry; (entry = readdir(folder));)
        files += entry->d_name[0] != '.';
    printf("killed by %d, core written: %d, files: %d\n", WTERMSIG(status), WCOREDUMP(status) != 0, files);
}
