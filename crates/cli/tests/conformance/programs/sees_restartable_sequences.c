// The C library has registered restartable sequences with the kernel, whose record names the processor.
#include <sched.h>
#include <stdio.h>
#include <sys/rseq.h>

int main(void)
{
    printf("size %u, flags %u, ", __rseq_size, __rseq_flags);
    struct rseq *record = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
    printf("registered: %d\n", __rseq_size && (int)record->cpu_id >= 0);
}
