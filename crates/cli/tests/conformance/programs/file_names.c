// Renaming, exchanging, linking and removing files and folders does what it should, and fails as it should.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void say(const char *what, int result)
{
    printf("%s: %s\n", what, result < 0 ? strerror(errno) : "done");
}

static void make(const char *name)
{
    int file = open(name, O_CREAT | O_WRONLY | O_EXCL, 0644);
    write(file, name, strlen(name));
    close(file);
}

int main(void)
{
    char text[64] = "", name[300];
    make("a");
    make("b");
    mkdir("folder", 0755);
    make("folder/inside");
    say("made twice", open("a", O_CREAT | O_EXCL, 0644));
    say("renamed onto another", rename("a", "b"));
    make("c");
    say("renamed without replacing", renameat2(AT_FDCWD, "b", AT_FDCWD, "c", RENAME_NOREPLACE));
    say("exchanged", renameat2(AT_FDCWD, "b", AT_FDCWD, "c", RENAME_EXCHANGE));
    read(open("b", O_RDONLY), text, 63);
    printf("b holds what %s held\n", text);
    say("folder into itself", rename("folder", "folder/deeper"));
    say("folder onto a file", rename("folder", "b"));
    say("file onto a folder", rename("b", "folder"));
    say("folder removed as a file", unlink("folder"));
    say("full folder", rmdir("folder"));
    say("file as a folder", open("b/x", O_RDONLY));
    say("folder for writing", open("folder", O_WRONLY));
    say("links", link("b", "folder/link"));
    say("link to a folder", link("folder", "other"));
    memset(name, 'n', 299);
    name[256] = 0;
    say("256 letters", open(name, O_CREAT | O_WRONLY, 0644));
    name[255] = 0;
    say("255 letters", open(name, O_CREAT | O_WRONLY, 0644));
    say("removed", unlink(name));
    say("odd bytes", open("\xff\n\t*", O_CREAT | O_WRONLY, 0644));
    say("missing", unlink("missing"));
    say("empty", open("", O_RDONLY));
}
