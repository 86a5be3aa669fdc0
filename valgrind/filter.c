// SPDX-License-Identifier: GPL-2.0-or-later
/* From the logs to records: repeats of a page (or line) are left out. */

#include "log.h"

#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcprint.h"

/*
 * A filter slot: the last address recorded in it, and how many accesses to
 * the same page were left out since. Empty: an address that no page has.
 */
struct slot {
	ULong addr;
	ULong count;
};
#define EMPTY (~0ULL)
/*
 * Of a record. More instructions of one page are sent at once, so that the
 * model knows about when they were executed.
 */
#define COUNT_BITS 16

struct lk_group lk_groups[LK_GROUPS + LK_MORE];
struct lk_access lk_accesses[1 + LK_ACCESSES];
struct lk_group *lk_groups_end = lk_groups;
struct lk_access *lk_accesses_end = LK_ACCESSES_FIRST;
ULong lk_some_not_taken;

static struct slot slots[LK_TABLES << LK_MAX_CLASSES];
static ULong totals[LK_TABLES]; /* by lk_kind */
static UInt unit_shift;

/* Sends the slot's count, and which table it is of. */
static struct lk_record *put_count(struct lk_record *out, struct slot *slot,
				   Int table)
{
	out = lk_put_record(out,
			    slot->addr | (ULong)LK_REPEATS << LK_KIND_SHIFT |
				    (ULong)table << LK_SIZE_SHIFT,
			    slot->count);
	slot->count = 0;
	return out;
}

static inline struct slot *slot_of(UInt kind, ULong addr)
{
	ULong mask = (1ULL << lk_opt.classes) - 1;

	return &slots[((ULong)lk_opt.table[kind] << lk_opt.classes) +
		      (addr >> LK_PAGE_SHIFT & mask)];
}

/* An access to another page than the slot's. */
static inline struct lk_record *put_missed(struct lk_record *out,
					   struct slot *slot, Int table,
					   ULong addr, ULong what)
{
	if (slot->count >> COUNT_BITS)
		out = put_count(out, slot, table);
	out = lk_put_record(out, addr | (what & ~LK_ADDR_MASK),
			    (what & LK_ADDR_MASK) |
				    slot->count << LK_PREV_SHIFT);
	slot->addr = addr;
	slot->count = 0;
	return out;
}

/* One access, and `more` to the same page right after it. */
static void put_access(UInt kind, ULong addr, ULong what, ULong more)
{
	struct slot *slot;

	if (lk_opt.granularity == LK_BYTE) {
		lk_out = lk_put_record(lk_out, addr | (what & ~LK_ADDR_MASK),
				       what & LK_ADDR_MASK);
		return;
	}
	slot = slot_of(kind, addr);
	if ((addr ^ slot->addr) >> unit_shift)
		lk_out = put_missed(lk_out, slot, lk_opt.table[kind], addr,
				    what);
	else
		slot->count++;
	slot->count += more;
	if (kind == LK_FETCH && slot->count >> COUNT_BITS)
		lk_out = put_count(lk_out, slot, lk_opt.table[kind]);
}

static void put_accesses(const struct lk_access *from,
			 const struct lk_access *to)
{
	for (; from < to; from++) {
		ULong what = lk_what_of(from);
		UInt kind = what >> LK_KIND_SHIFT & 3;

		if (kind == LK_REPEATS)
			continue;
		totals[kind]++;
		if (!lk_opt.window)
			put_access(kind, from->addr, what, 0);
		else if (lk_window_access(kind, from->addr, what, 0,
					  lk_line_bit(from->addr)))
			lk_note_visit(from);
	}
}

static void put_group(const struct lk_group *group)
{
	const struct lk_site *site = &lk_sites[group->site];
	ULong more = (ULong)site->instructions - 1;

	totals[LK_FETCH] += site->instructions;
	if (!lk_opt.fetches || !site->instructions)
		return;
	if (lk_opt.window)
		lk_window_access(LK_FETCH, lk_ip_of(site), site->what,
				 more, site->lines);
	else
		put_access(LK_FETCH, lk_ip_of(site), site->what,
			   more);
}

/* In the order of the program, for any setting. */
static void filter_in_order(void)
{
	const struct lk_access *access = LK_ACCESSES_FIRST;
	const struct lk_group *group;

	for (group = lk_groups; group < lk_groups_end; group++) {
		put_accesses(access, group->before);
		access = group->before;
		put_group(group);
	}
	put_accesses(access, lk_accesses_end);
}

/* Positions in the log of accesses that are on another page than the last. */
static UInt changes[LK_ACCESSES + 1];

/* Without a branch, which nobody could foretell. */
static UInt find_changes(UInt n)
{
	UInt shift = unit_shift;
	UInt found = 0;
	UInt i;

	lk_accesses[0].addr = slots[0].addr;
	for (i = 0; i < n; i++) {
		changes[found] = i;
		found += (lk_accesses[i + 1].addr ^ lk_accesses[i].addr) >> shift !=
			 0;
	}
	return found;
}

/*
 * As filter_in_order, where loads and stores share one slot, fetches have
 * another, and each logged access takes place: what was left out is then the
 * distance between two changes.
 */
static void filter_plain(void)
{
	const struct lk_access *first = LK_ACCESSES_FIRST;
	UInt n = lk_accesses_end - first;
	UInt shift = unit_shift;
	const UInt *change = changes;
	const UInt *last = changes + find_changes(n);
	const struct lk_group *group = lk_groups;
	const struct lk_group *end = lk_groups_end;
	/* Copies, which the compiler may keep in registers. */
	struct slot data = *slot_of(LK_LOAD, 0);
	struct slot fetch = *slot_of(LK_FETCH, 0);
	struct lk_record *out = lk_out;
	ULong instructions = 0;
	ULong stores = 0;
	UInt done = 0; /* accesses that are recorded or counted */

	for (;; group++) {
		const struct lk_site *next;
		UInt until = n;

		/* To the next fetch from another page. */
		for (; group < end; group++) {
			const struct lk_site *site = &lk_sites[group->site];

			instructions += site->instructions;
			stores += site->stores;
			if (!lk_opt.fetches)
				continue;
			if ((lk_ip_of(site) ^ fetch.addr) >> shift)
				break;
			fetch.count += site->instructions;
			if (fetch.count >> COUNT_BITS)
				out = put_count(out, &fetch,
						lk_opt.table[LK_FETCH]);
		}
		if (group < end)
			until = group->before - first;
		for (; change < last && *change < until; change++) {
			const struct lk_access *access = &first[*change];

			data.count += *change - done;
			done = *change + 1;
			out = put_missed(out, &data, lk_opt.table[LK_LOAD],
					 access->addr, lk_what_of(access));
		}
		if (group == end)
			break;
		next = &lk_sites[group->site];
		out = put_missed(out, &fetch, lk_opt.table[LK_FETCH],
				 lk_ip_of(next), next->what);
		fetch.count = (ULong)next->instructions - 1;
	}
	data.count += n - done;
	lk_out = out;
	*slot_of(LK_LOAD, 0) = data;
	*slot_of(LK_FETCH, 0) = fetch;
	totals[LK_FETCH] += instructions;
	totals[LK_STORE] += stores;
	totals[LK_LOAD] += n - stores;
}

/* Makes records of what is logged. */
void lk_filter(void)
{
	static UInt fillings;
	Bool plain = lk_opt.granularity != LK_BYTE &&
		     (lk_opt.window || !lk_opt.classes) &&
		     lk_opt.table[LK_LOAD] == lk_opt.table[LK_STORE] &&
		     lk_opt.table[LK_LOAD] != lk_opt.table[LK_FETCH] &&
		     !lk_some_not_taken;

	if (!plain)
		filter_in_order();
	else if (lk_opt.window)
		lk_filter_windows(totals);
	else
		filter_plain();
	lk_some_not_taken = 0;
	if (lk_opt.waits)
		lk_waits_emptied();
	lk_groups_end = lk_groups;
	lk_accesses_end = LK_ACCESSES_FIRST;
	if (lk_opt.window && ++fillings % LK_FILLINGS == 0) {
		lk_empty_windows();
		lk_send_records();
	}
}

void lk_filter_init(void)
{
	UInt i;

	unit_shift = lk_unit_shift();
	for (i = 0; i < LK_TABLES << LK_MAX_CLASSES; i++)
		slots[i].addr = EMPTY;
	lk_windows_init();
}

/* Makes a frame of what is logged. */
void lk_finish_frame(void)
{
	lk_filter();
	lk_empty_windows();
	lk_send_records();
}

/* Sends all counts and records; the next access to any page is recorded. */
void lk_empty_slots(void)
{
	UInt i;

	lk_filter();
	for (i = 0; i < LK_TABLES << lk_opt.classes; i++) {
		if (slots[i].count)
			lk_out = put_count(lk_out, &slots[i],
					   i >> lk_opt.classes);
		slots[i].addr = EMPTY;
	}
	lk_finish_frame();
}

void lk_forget_totals(void)
{
	totals[LK_LOAD] = totals[LK_STORE] = totals[LK_FETCH] = 0;
}

void lk_send_totals(ThreadId tid)
{
	HChar json[200];
	UInt len;

	lk_filter();
	len = VG_(snprintf)(json, sizeof(json),
			    "{\"totals\":{\"loads\":%llu,\"stores\":%llu,"
			    "\"fetches\":%llu,\"instructions\":%llu}}",
			    totals[LK_LOAD], totals[LK_STORE],
			    lk_opt.fetches ? totals[LK_FETCH] : 0,
			    totals[LK_FETCH]);
	lk_send_event(tid, json, len);
}
