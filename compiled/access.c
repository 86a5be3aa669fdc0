/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The filter's seldom cases, and batches of records. */
#include "recorder.h"

static uint64_t slots(const struct thread *t)
{
	return 2 * (t->filter->class_mask + 1);
}

void recorder_empty_slots(struct thread *t)
{
	for (uint64_t i = 0; i < slots(t); i++)
		t->slots[i] = NO_UNIT;
}

static void send_batch(struct thread *t)
{
	size_t n = (size_t)(t->filter->at - t->batch);

	t->filter->at = t->batch;
	if (n == 0)
		return;
	for (size_t i = 0; i < n; i++)
		/* More bits are an address that no program has, on its way into a fault. */
		t->made += (t->batch[i].w0 >> 48 & 0xff) == REPEATS ? t->batch[i].w1 : 1 + (t->batch[i].w1 >> 48);
	maps_look(t, t->batch, n);
	wire_records(t, t->batch, n);
}

/* A record of the repeats of a slot. */
static void append_count(struct thread *t, filter_slot *slot)
{
	uint64_t table = (uint64_t)(slot - t->slots) > t->filter->class_mask;
	uint64_t count = *slot & MOST_REPEATS;

	if (count == 0)
		return;
	if (t->filter->at == t->batch + BATCH)
		send_batch(t);
	*t->filter->at++ = (struct record){
		(*slot >> COUNT_BITS << t->unit_shift & ADDR_MASK) | (uint64_t)REPEATS << 48 | table << 56, count};
	*slot -= count;
}

void recorder_drain(struct thread *t, bool empty)
{
	for (uint64_t i = 0; empty && t->unit_shift != 0 && i < slots(t); i++) {
		append_count(t, &t->slots[i]);
		t->slots[i] = NO_UNIT;
	}
	send_batch(t);
}

void recorder_slowly(unsigned kind, uint64_t addr, unsigned size, uint64_t instruction)
{
	struct thread *t = recorder_enter();
	uint64_t before = 0;

	if (t == NULL)
		return;
	if (t->filter->at == t->batch + BATCH)
		recorder_drain(t, recorder_many);
	addr &= ADDR_MASK;
	t->filter->stores += kind == STORE;
	if (t->unit_shift != 0) {
		filter_slot *slot = &t->filter->table[kind][addr >> PAGE_SHIFT & t->filter->class_mask];

		if (*slot >> COUNT_BITS == addr >> t->unit_shift) {
			/* Of a page, one repeat more than a record counts. */
			if ((*slot & MOST_REPEATS) == MOST_REPEATS)
				append_count(t, slot);
			*slot += 1;
			recorder_leave(t);
			return;
		}
		before = *slot & MOST_REPEATS;
		*slot = addr >> t->unit_shift << COUNT_BITS;
	}
	*t->filter->at++ = recorder_record(kind, addr, size, instruction, before);
	recorder_leave(t);
}
