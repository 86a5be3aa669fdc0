/* The only program of a small virtual machine: reads 256 MiB at random without end, and says on the console how long a read
 * takes. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

#define BYTES ((size_t)256 << 20)
#define LINE_WORDS (64 / sizeof(size_t))
#define LINES (BYTES / 64)
#define READS 200000

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e9 + now.tv_nsec;
}

int main(void)
{
	size_t *at = aligned_alloc(2 << 20, BYTES), place = 0;

	mount("none", "/dev", "devtmpfs", 0, 0);
	if (!at || dup2(open("/dev/console", O_RDWR), 1) != 1)
		return 1;
	/* One cycle through all lines, in an order without pattern (Sattolo). */
	for (size_t line = 0; line < LINES; line++)
		at[line * LINE_WORDS] = line;
	srand48(1);
	for (size_t line = LINES - 1; line > 0; line--) {
		size_t other = (size_t)lrand48() % line, held = at[line * LINE_WORDS];

		at[line * LINE_WORDS] = at[other * LINE_WORDS];
		at[other * LINE_WORDS] = held;
	}
	for (;;) {
		double began = now_ns();

		for (int i = 0; i < READS; i++)
			place = at[place * LINE_WORDS];
		printf("read %.1f ns%s\n", (now_ns() - began) / READS, place < LINES ? "" : "!");
		fflush(stdout);
	}
}
