// Watching the folder tells what happens to a file in it, in order.
#include <fcntl.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

int main(void)
{
    char events[4096] __attribute__((aligned(8)));
    alarm(60);
    int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    inotify_add_watch(watch, ".", IN_ALL_EVENTS);
    int file = open("watched", O_CREAT | O_RDWR, 0644);
    write(file, "text", 4);
    close(file);
    file = open("watched", O_RDONLY);
    read(file, events, 10);
    close(file);
    rename("watched", "moved");
    link("moved", "second");
    unlink("second");
    unlink("moved");
    ssize_t length = read(watch, events, sizeof events);
    for (char *at = events; at < events + length;) {
        struct inotify_event *event = (void *)at;
        printf("%x %s\n", event->mask, event->len ? event->name : "-");
        at += sizeof *event + event->len;
    }
    printf("then %zd\n", read(watch, events, sizeof events));
}
