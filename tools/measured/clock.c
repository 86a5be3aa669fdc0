/*
 * What the kernel's clock event costs a program, per sample: the timer's interrupts alone, without a ring to write
 * samples to, and samples as the sampler asks for them. Work of some 30 ms without any event and with each in turn,
 * medians of 60 rounds of this thread's CPU time. The argument is the rate.
 */
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 60
#define RING_BYTES (129 * 4096)

struct way {
	const char *name;
	int event;
	struct perf_event_mmap_page *ring;
	double seconds[ROUNDS];
};

static volatile uint64_t result;

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void work(void)
{
	uint64_t x = 1;

	for (long i = 0; i < 30000000; i++)
		x = x * 6364136223846793005ull + 1442695040888963407ull;
	result = x;
}

/* With a ring: user registers in each sample, as `crates/capture/src/sample/perf.rs` asks for. */
static int open_event(struct way *way, uint64_t period_ns, int with_ring)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period_ns,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	if (with_ring) {
		attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD |
				   PERF_SAMPLE_REGS_USER;
		attr.sample_regs_user = 0xff | 0xff << 16;
		attr.watermark = 1;
		attr.wakeup_watermark = RING_BYTES / 2;
		attr.use_clockid = 1;
		attr.clockid = CLOCK_MONOTONIC;
	}
	way->event = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (way->event < 0)
		return -1;
	if (with_ring)
		way->ring = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, way->event, 0);
	return with_ring && way->ring == MAP_FAILED ? -1 : 0;
}

static int ascending(const void *a, const void *b)
{
	double d = *(const double *)a - *(const double *)b;

	return (d > 0) - (d < 0);
}

int main(int argc, char **argv)
{
	static struct way ways[3] = { { "none", -1 }, { "the timer's interrupts alone", -1 }, { "samples", -1 } };
	int hz = argc > 1 ? atoi(argv[1]) : 2000;
	uint64_t period_ns = 1000000000ull / (hz > 0 ? hz : 1);
	double base;

	if (open_event(&ways[1], period_ns, 0) || open_event(&ways[2], period_ns, 1)) {
		perror("clock event");
		return 1;
	}
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < 3; i++) {
			struct way *way = &ways[i];
			double from;

			if (way->ring)
				way->ring->data_tail = way->ring->data_head;
			if (way->event >= 0)
				ioctl(way->event, PERF_EVENT_IOC_ENABLE, 0);
			from = cpu_seconds();
			work();
			way->seconds[round] = cpu_seconds() - from;
			if (way->event >= 0)
				ioctl(way->event, PERF_EVENT_IOC_DISABLE, 0);
		}
	}
	for (int i = 0; i < 3; i++)
		qsort(ways[i].seconds, ROUNDS, sizeof(double), ascending);
	base = ways[0].seconds[ROUNDS / 2];
	for (int i = 1; i < 3; i++) {
		double added = ways[i].seconds[ROUNDS / 2] - base;

		printf("clock event at %d Hz, %s: %.2f %% CPU time added, %.1f us a sample\n", hz, ways[i].name,
		       100 * added / base, added * 1e6 / (base * 1e9 / period_ns));
	}
	return 0;
}
