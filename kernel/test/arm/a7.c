// SPDX-License-Identifier: GPL-2.0
/* The Cortex-A7's TLB as QEMU has it, which is none; and entries that are supplied instead. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "arm.h"

bool pin(pid_t thread, unsigned int core)
{
	cpu_set_t cores;

	CPU_ZERO(&cores);
	CPU_SET(core, &cores);
	return !sched_setaffinity(thread, sizeof(cores), &cores);
}

int dump(unsigned int core, struct lookaside_tlb *tlb)
{
	*tlb = (struct lookaside_tlb) { .version = LOOKASIDE_VERSION, .core = core };
	return ioctl(device, LOOKASIDE_TLB, tlb) ? errno : 0;
}

int migrate(unsigned long number, int pagemap, pid_t thread, unsigned int cap, struct lookaside_migrate *answer)
{
	struct lookaside_migrate unused;

	answer = answer ? answer : &unused;
	*answer = (struct lookaside_migrate) {
		.version = LOOKASIDE_VERSION,
		.pagemap = pagemap,
		.thread = thread,
		.cap = cap,
	};
	return ioctl(device, number, answer) ? errno : 0;
}

unsigned int own_asid(unsigned int core)
{
	static struct lookaside_tlb tlb;

	return dump(core, &tlb) ? 0 : tlb.asid;
}

void put(uint32_t data[3], unsigned int high, unsigned int low, uint32_t value)
{
	unsigned int bit;

	for (bit = low; bit <= high; bit++, value >>= 1) {
		data[bit / 32] &= ~(1U << bit % 32);
		data[bit / 32] |= (value & 1) << bit % 32;
	}
}

void supply(unsigned int core, unsigned int entry, const uint32_t data[3])
{
	char line[80];

	snprintf(line, sizeof(line), "%u %u %u %08x %08x %08x", core, entry / 128, entry % 128, data[0], data[1],
		 data[2]);
	if (!write_to(PREFETCHES, line))
		ok(false, "an entry can be supplied: %s", line);
}

void supply_page(unsigned int core, unsigned int way, struct page page)
{
	uint32_t data[3] = { 0 };

	put(data, 0, 0, 1);
	put(data, 17, 5, page.addr >> 19);
	put(data, 33, 26, page.asid);
	put(data, 34, 34, 1);
	supply(core, 128 * way + (page.addr >> 12) % 128, data);
}

void supply_none(unsigned int core)
{
	static const uint32_t none[3];
	unsigned int entry;

	for (entry = 0; entry < LOOKASIDE_TLB_ENTRIES; entry++)
		supply(core, entry, none);
}

size_t prefetched(unsigned int core, uint32_t *pages)
{
	static struct event events[EVENTS];
	size_t count = recorded_in(PREFETCHES, events), i;

	for (i = 0; i < count; i++) {
		pages[i] = events[i].value;
		if (events[i].core != core || strcmp(events[i].what, "pld")) {
			note("%u %s %08x", events[i].core, events[i].what, events[i].value);
			pages[i] = 1;
		}
	}
	return count;
}

void without_tlb(unsigned int cores)
{
	static struct lookaside_tlb tlb;
	struct lookaside_migrate answer;
	unsigned int core, wrong = 0, i;

	for (core = 0; core < cores; core++) {
		wrong += dump(core, &tlb) || tlb.valid;
		for (i = 0; i < LOOKASIDE_TLB_ENTRIES; i++)
			wrong += tlb.entries[i].data[0] || tlb.entries[i].data[1] || tlb.entries[i].data[2];
	}
	same(wrong, 0, "by way of the processor's registers there are no valid entries");
	ok(pin(0, 0) && !migrate(LOOKASIDE_MIGRATE, -1, 0, 256, NULL), "a thread may take its pages along");
	for (i = 1; i <= 10; i++)
		wrong += !pin(0, i % 2);
	same(wrong, 0, "it is moved ten times");
	ok(!migrate(LOOKASIDE_STAY, -1, 0, 0, &answer) && answer.moves == 10 && answer.saves && !answer.saved &&
	   !answer.restores, "%llu moves were seen, the TLB was read %llu times, and nothing in it",
	   (unsigned long long)answer.moves, (unsigned long long)answer.saves);
	same(lock(-1, small_pages(PAGE), NULL), ENODEV, "pages cannot be locked");
}
