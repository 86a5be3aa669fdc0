// Constructors, exit handlers and destructors run in order, each once, and handlers may register more and exit again.
#include <stdio.h>
#include <stdlib.h>

static int ran, nested_ran;

static void say(const char *what)
{
    printf("%d %s\n", ++ran, what);
}

__attribute__((constructor(201))) static void early(int argc, char **argv, char **envp)
{
    say(argc == 1 && argv[0] && envp ? "constructor 201 with arguments" : "constructor 201");
}
__attribute__((constructor(202))) static void late(void) { say("constructor 202"); }
__attribute__((destructor(201))) static void very_last(void) { say("destructor 201"); }
__attribute__((destructor(202))) static void near_last(void)
{
    say("destructor 202");
    printf("  nested ones %d\n", nested_ran);
}

static void first(void) { say("first registered"); }
static void nested(void) { nested_ran++; }
static void second(void) { say("second registered"); atexit(nested); }
static void with_status(int status, void *argument)
{
    say((char *)argument);
    printf("  status %d\n", status);
    exit(status + 1);
}

int main(void)
{
    int wrong = 0;
    atexit(first);
    atexit(second);
    on_exit(with_status, "on_exit, exits again");
    for (int i = 0; i < 100; i++)
        wrong += atexit(nested) != 0;
    printf("refused: %d\n", wrong);
    exit(20);
}
