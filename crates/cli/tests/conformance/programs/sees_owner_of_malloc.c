// malloc, memcpy and other functions that tools replace belong to the C library, as the linker finds them.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    const char *names[] = { "malloc", "free", "mmap", "fork", "exit", "strlen", "pthread_create", "sigaction", "clone" };
    for (int i = 0; i < sizeof names / sizeof *names; i++) {
        Dl_info info = { 0 };
        void *at = dlsym(RTLD_DEFAULT, names[i]), *next = dlsym(RTLD_NEXT, names[i]);
        dladdr(at, &info);
        const char *file = info.dli_fname ? strrchr(info.dli_fname, '/') : NULL;
        printf("%s in %s, first is next: %d\n", names[i], file ? file + 1 : "?", at == next);
    }
}
