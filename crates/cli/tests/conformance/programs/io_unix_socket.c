// Over a socket in the folder a client and a server talk, know each other's user and process, and see the end.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    struct sockaddr_un name = { AF_UNIX, "socket" };
    struct ucred who = { 0 };
    socklen_t length = sizeof who;
    char text[64] = "";
    alarm(60);
    int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    printf("bind: %d, ", bind(server, (void *)&name, sizeof name));
    printf("again: %s, ", bind(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&name, sizeof name) ? strerror(errno) : "done");
    printf("listen: %d\n", listen(server, 4));
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        int client = socket(AF_UNIX, SOCK_STREAM, 0);
        if (connect(client, (void *)&name, sizeof name))
            _exit(1);
        write(client, "a question", 10);
        shutdown(client, SHUT_WR);
        ssize_t got = read(client, text, sizeof text - 1);
        _exit(got == 9 && !strcmp(text, "an answer") ? 4 : 5);
    }
    int connection = accept4(server, 0, 0, SOCK_CLOEXEC), status = 0;
    getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &who, &length);
    printf("user right: %d, group right: %d, process right: %d\n",
           who.uid == getuid(), who.gid == getgid(), who.pid == child);
    for (int got = 0, n; (n = read(connection, text + got, sizeof text - 1 - got)) > 0; got += n)
        ;
    write(connection, "an answer", 9);
    close(connection);
    waitpid(child, &status, 0);
    printf("got %s, client ended with %d\n", text, WEXITSTATUS(status));
}
