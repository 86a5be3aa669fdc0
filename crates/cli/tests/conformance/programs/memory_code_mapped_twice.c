// Code written through one mapping of a memory file runs in another that may only be executed, also when changed.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void)
{
    unsigned char code[] = { 0xb8, 0, 0, 0, 0, 0xc3 }; /* mov eax, value; ret */
    int wrong = 0, file = memfd_create("code", MFD_CLOEXEC);
    ftruncate(file, 4096);
    unsigned char *writable = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    unsigned char *runs = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
    for (int value = 0; value < 40; value++) {
        unsigned char *at = writable + value * 16;
        memcpy(code + 1, &value, 4);
        memcpy(at, code, sizeof code);
        __builtin___clear_cache((char *)runs + value * 16, (char *)runs + value * 16 + sizeof code);
        wrong += ((int (*)(void))(runs + value * 16))() != value;
    }
    printf("each at its own place: wrong %d\n", wrong);
}
