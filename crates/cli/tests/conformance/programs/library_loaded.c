// Libraries can be loaded, searched, used and unloaded while the program runs, also in a thread.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void *use(void *who)
{
    void *library = dlopen("libm.so.6", RTLD_NOW);
    double (*cosine)(double) = dlsym(library, "cos");
    double (*power)(double, double) = dlsym(library, "pow");
    printf("%s: cos(0) %g, 2^10 %g, missing: %d, ", (char *)who, cosine(0), power(2, 10),
           dlsym(library, "no_such_function") == NULL);
    printf("closed: %d\n", dlclose(library));
    return 0;
}

int main(void)
{
    pthread_t thread;
    alarm(60);
    for (int i = 0; i < 3; i++)
        use("main");
    pthread_create(&thread, 0, use, "thread");
    pthread_join(thread, 0);
    void *none = dlopen("libno_such.so", RTLD_NOW);
    printf("%d, %s\n", none == NULL, dlerror());
    printf("error again: %d\n", dlerror() != NULL);
    void *self = dlopen(NULL, RTLD_NOW);
    printf("itself: %d, printf found: %d\n", self != NULL, dlsym(self, "printf") == printf);
}
