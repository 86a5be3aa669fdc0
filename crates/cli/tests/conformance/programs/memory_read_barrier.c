// Pages that may not be touched at all fault on reading too, in several threads, and each keeps what it held.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGES = 48, PAGE = 4096, THREADS = 3 };
static volatile char *heap;
static volatile int faults;

static void on_fault(int number, siginfo_t *info, void *context)
{
    volatile char *page = (char *)((long)info->si_addr & ~(PAGE - 1L));
    if (page < heap || page >= heap + PAGES * PAGE)
        _exit(99);
    __atomic_add_fetch(&faults, 1, __ATOMIC_SEQ_CST);
    mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE);
}

static void *reader(void *number)
{
    long sum = 0;
    for (int i = (long)number; i < PAGES; i += THREADS)
        sum += heap[i * PAGE + 5] + heap[i * PAGE + PAGE - 1];
    return (void *)sum;
}

int main(void)
{
    pthread_t threads[THREADS];
    long sum = 0;
    alarm(60);
    heap = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < PAGES; i++)
        heap[i * PAGE + 5] = heap[i * PAGE + PAGE - 1] = i;
    sigaction(SIGSEGV, &(struct sigaction){ .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO }, 0);
    mprotect((void *)heap, PAGES * PAGE, PROT_NONE);
    usleep(20000);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], 0, reader, (void *)i);
    for (int i = 0; i < THREADS; i++) {
        void *one;
        pthread_join(threads[i], &one);
        sum += (long)one;
    }
    printf("faults %d, sum %ld\n", faults, sum);
}
