// SPDX-License-Identifier: GPL-2.0
/* What is in a TLB, field by field; and who is not told. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arm.h"

#define ENTRIES	LOOKASIDE_TLB_ENTRIES

/* Table 3.1 of the paper, typed a second time. VA and PA are looked at as addresses. */
static const struct {
	const char *name;
	size_t offset;
	unsigned int high, low;
} fields[] = {
#define FIELD(field, high, low)	{ #field, offsetof(struct lookaside_tlb_entry, field), high, low }
	FIELD(valid, 0, 0), FIELD(size, 3, 1), FIELD(ns_walk, 4, 4), FIELD(vmid, 25, 18), FIELD(asid, 33, 26),
	FIELD(not_global, 34, 34), FIELD(ap, 37, 35), FIELD(hap, 39, 38), FIELD(ns, 40, 40), FIELD(pxn, 69, 69),
	FIELD(xn1, 70, 70), FIELD(xn2, 71, 71), FIELD(memory, 77, 72), FIELD(domain, 81, 78), FIELD(s1_size, 83, 82),
	FIELD(s2_level, 85, 84),
};

static uint32_t bits(const uint32_t data[3], unsigned int high, unsigned int low)
{
	uint32_t value = 0;
	unsigned int bit;

	for (bit = low; bit <= high; bit++)
		value |= (data[bit / 32] >> bit % 32 & 1) << (bit - low);
	return value;
}

/* Fields of an entry that are not what its registers say. */
static unsigned int wrong_fields(unsigned int index, const struct lookaside_tlb_entry *entry, const uint32_t data[3])
{
	uint32_t addr = bits(data, 17, 5) * 128 * PAGE + index * PAGE;
	unsigned int i, wrong = 0;

	for (i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		if (((const uint8_t *)entry)[fields[i].offset] != bits(data, fields[i].high, fields[i].low)) {
			note("%s of %08x %08x %08x", fields[i].name, data[0], data[1], data[2]);
			wrong++;
		}
	return wrong + !!memcmp(entry->data, data, sizeof(entry->data)) +
	       (entry->addr != (bits(data, 3, 1) < 2 ? addr : 0)) +
	       (entry->pa != (uint64_t)bits(data, 68, 41) * PAGE);
}

/* ASID of the calling process, as the core says that it is on. */
static unsigned int asid_here(void)
{
	return own_asid(sched_getcpu());
}

static unsigned int asid_of_another(void)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(asid_here());
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

void dumps(unsigned int cores)
{
	static uint32_t contents[8][ENTRIES][3];
	static struct lookaside_tlb tlb;
	unsigned int core, i, word, wrong = 0, valid = 0, told = 0;
	/* The same numbers each time. */
	unsigned short seed[3] = { 1, 2, 3 };

	ok(!dump(0, &tlb) && !tlb.valid && tlb.core == 0, "nothing is supplied: no valid entries");
	for (core = 0; core < cores; core++)
		for (i = 0; i < ENTRIES; i++) {
			for (word = 0; word < 3; word++)
				contents[core][i][word] = jrand48(seed);
			supply(core, i, contents[core][i]);
		}
	for (core = 0; core < cores; core++) {
		wrong += dump(core, &tlb) != 0;
		told += tlb.valid;
		for (i = 0; i < ENTRIES; i++) {
			valid += contents[core][i][0] & 1;
			wrong += wrong_fields(i % 128, &tlb.entries[i], contents[core][i]);
		}
	}
	same(wrong, 0, "random entries of each core, field by field");
	ok(told == valid && valid, "%u of them are valid", told);
	/* One bit at a time. */
	for (i = 0, wrong = 0; i < 86; i++) {
		uint32_t data[3] = { 0 };

		put(data, i, i, 1);
		supply(0, i, data);
		wrong += dump(0, &tlb) || wrong_fields(i, &tlb.entries[i], data);
	}
	same(wrong, 0, "each bit by itself");
	for (core = 0; core < cores; core++)
		supply_none(core);
	same(dump(0, &tlb) + tlb.valid, 0, "all are taken away");

	ok(pin(0, 0) && asid_here() && asid_here() < 256, "the core has ASID %u", asid_here());
	ok(asid_here() != asid_of_another(), "another process has another");
}

static int dump_own(int pagemap, const struct puppet *puppet)
{
	static struct lookaside_tlb tlb;

	(void)pagemap;
	(void)puppet;
	return dump(0, &tlb);
}

void dump_refusals(unsigned int cores)
{
	static struct lookaside_tlb tlb;

#define REFUSED(error, what, ...) do { \
		tlb = (struct lookaside_tlb) { .version = LOOKASIDE_VERSION }; \
		__VA_ARGS__; \
		ok(ioctl(device, LOOKASIDE_TLB, &tlb) && errno == (error), what); \
	} while (0)
	REFUSED(EPROTO, "version 0", tlb.version = 0);
	REFUSED(EPROTO, "the next version", tlb.version++);
	REFUSED(EINVAL, "a flag", tlb.flags = 1);
	REFUSED(EINVAL, "reserved used", tlb.reserved = 1);
	REFUSED(ENXIO, "a core too many", tlb.core = cores);
	REFUSED(ENXIO, "core 4294967295", tlb.core = -1);
	ok(ioctl(device, LOOKASIDE_TLB, NULL) && errno == EFAULT, "no structure");
	same(as_user(1000, dump_own, NULL), EPERM, "user 1000 is not told");
	/* As one may be that comes online later. */
	ok(write_to(PREFETCHES, "1 other"), "a core is no Cortex-A7");
	same(dump(1, &tlb), ENODEV, "its TLB cannot be read");
	same(dump(0, &tlb), 0, "another's can");
	ok(write_to(PREFETCHES, "1 a7"), "it is one");
	ok(write_to("/sys/devices/system/cpu/cpu1/online", "0"), "a core is switched off");
	same(dump(1, &tlb), ENXIO, "its TLB cannot be read");
	ok(write_to("/sys/devices/system/cpu/cpu1/online", "1"), "it is switched on again");
	same(dump(1, &tlb), 0, "then it can");
}
