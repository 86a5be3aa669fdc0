/* Reads without end, each at the place that the one before tells, over the first KIB of MIB that are all there. Of few KIB
 * no read misses the TLB: huge pages can save nothing. usage: reads_within KIB MIB */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define LINE_WORDS (64 / sizeof(size_t))
#define ROUND 100000

int main(int count, char **words)
{
	size_t lines = (size_t)atol(count > 1 ? words[1] : "200") * 1024 / 64;
	size_t bytes = (size_t)atol(count > 2 ? words[2] : "64") << 20;
	size_t *at = aligned_alloc(2 << 20, bytes), line, place = 0;

	if (!at || lines * 64 > bytes || lines < 2)
		return 1;
	memset(at, 1, bytes);
	/* One cycle through all lines, in an order without pattern (Sattolo). */
	for (line = 0; line < lines; line++)
		at[line * LINE_WORDS] = line;
	srand48(1);
	for (line = lines - 1; line > 0; line--) {
		size_t other = (size_t)lrand48() % line, held = at[line * LINE_WORDS];

		at[line * LINE_WORDS] = at[other * LINE_WORDS];
		at[other * LINE_WORDS] = held;
	}
	for (;;) {
		for (int i = 0; i < ROUND; i++)
			place = at[place * LINE_WORDS];
		if (place >= lines)
			return 2;
	}
}
