// A folder's listing has all that was made in it, by readdir, scandir, glob and a walk through the folders below.
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int files, folders, deepest;

static int visit(const char *path, const struct stat *state, int type, struct FTW *at)
{
    files += type == FTW_F;
    folders += type == FTW_DP;
    deepest = at->level > deepest ? at->level : deepest;
    return 0;
}

int main(void)
{
    char name[64];
    struct dirent **list;
    glob_t found;
    int count = 0;
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "file%03d", i);
        close(open(name, O_CREAT | O_WRONLY, 0644));
    }
    mkdir("x", 0755);
    mkdir("x/y", 0755);
    close(open("x/y/z", O_CREAT | O_WRONLY, 0644));
    DIR *folder = opendir(".");
    while (readdir(folder))
        count++;
    rewinddir(folder);
    while (readdir(folder))
        count--;
    closedir(folder);
    int sorted = scandir(".", &list, NULL, alphasort);
    printf("difference %d, sorted %d: %s %s %s %s\n", count, sorted, list[0]->d_name, list[1]->d_name, list[2]->d_name,
           list[sorted - 1]->d_name);
    glob("*7", 0, NULL, &found);
    printf("ending in 7: %zu, first %s\n", found.gl_pathc, found.gl_pathv[0]);
    nftw(".", visit, 8, FTW_DEPTH | FTW_PHYS);
    printf("files %d, folders %d, deepest %d\n", files, folders, deepest);
    for (int i = 0; i < 295; i++) {
        snprintf(name, sizeof name, "file%03d", i);
        unlink(name);
    }
}
