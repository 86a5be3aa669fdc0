// Reading and writing over the border of two pages works at every offset, and faults at the second where that is forbidden.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <xmmintrin.h>

static sigjmp_buf back;
static char *volatile address;

static void on_fault(int signal, siginfo_t *info, void *context)
{
    address = info->si_addr;
    siglongjmp(back, 1);
}

int main(void)
{
    volatile int wrong = 0, elsewhere = 0, torn = 0;
    char *map = mmap(0, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *border = map + 4096;
    sigaction(SIGSEGV, &(struct sigaction){ .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO }, 0);
    for (int offset = 1; offset < 16; offset++) {
        __m128 four = _mm_set_ps(offset, offset + 1, offset + 2, offset + 3), back_again;
        _mm_storeu_ps((float *)(border - offset), four);
        back_again = _mm_loadu_ps((float *)(border - offset));
        wrong += memcmp(&four, &back_again, 16) != 0;
        *(volatile long *)(border - offset % 8) = 0x0102030405060708 * offset;
        wrong += *(volatile long *)(border - offset % 8) != 0x0102030405060708 * offset;
    }
    memset(map, 0, 4096);
    mprotect(border, 4096, PROT_NONE);
    for (volatile int offset = 1; offset < 8; offset++) {
        address = 0;
        if (!sigsetjmp(back, 1))
            *(volatile long *)(border - offset) = -1;
        elsewhere += address != border;
        for (int i = 1; i <= offset; i++)
            torn += border[-i] != 0;
    }
    printf("wrong %d, fault elsewhere %d, bytes written before the fault %d\n", wrong, elsewhere, torn);
}
