// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The filter where the model's first level keeps the pages used last: all
 * repeats of these are left out. A page comes into its table's window with
 * the access that is recorded, and leaves it as the one whose last access lies
 * furthest back. Windows are empty at the end of each frame, so that frames of
 * several processes can be mixed.
 *
 * Where the first level has sets, only some pages of each class may be there.
 * Before one more comes into a class the model is told in which order the
 * others of it were last used.
 */

#include "log.h"

#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"

/* Guesses at a page's place in the window, by bits of its number. */
#define HINTS 4096
/* Of a page that is not in the window. */
#define NOWHERE LK_MOST_WINDOW

struct window {
	ULong page[LK_MOST_WINDOW];
	ULong last[LK_MOST_WINDOW];  /* when, times places, plus the place */
	ULong count[LK_MOST_WINDOW]; /* left out */
	ULong lines[LK_MOST_WINDOW]; /* touched, a bit each */
	ULong own[LK_MOST_WINDOW];   /* the recorded access's bit */
	UInt n;
	ULong taken;                      /* places, a bit each */
	ULong of_class[1 << LK_MAX_CLASSES]; /* taken ones of its pages */
	ULong used; /* since the model last heard of the page */
	/* The last one of the class that the model heard of. */
	UChar newest[1 << LK_MAX_CLASSES];
	UChar hint[HINTS];
	UChar held[HINTS]; /* pages of the window that it is a hint at */
};

static struct window windows[LK_TABLES];
static ULong now;

/*
 * Records that a frame has room for before a page comes in: to bring it in,
 * others of its class being touched before, and to empty the windows. A leave
 * may need a count of its own.
 */
static inline UInt room_for(UInt window)
{
	UInt touched = lk_opt.classes ? lk_opt.class_pages : 0;

	if (touched > window)
		touched = window;
	return 3 + touched + LK_TABLES * window * 2;
}

static inline UInt hint_of(ULong page)
{
	return (page ^ page >> 12) % HINTS;
}

static inline ULong page_of(ULong addr)
{
	return addr >> LK_PAGE_SHIFT;
}

static inline UInt class_of(ULong page)
{
	return page & ((1U << lk_opt.classes) - 1);
}

static inline ULong lesser(ULong a, ULong b)
{
	return a < b ? a : b;
}

/* Of some places, not none: the page whose last access lies furthest back. */
static UInt oldest(const struct window *w, ULong places)
{
	ULong least = ~0ULL;

	for (; places; places &= places - 1)
		least = lesser(least, w->last[__builtin_ctzll(places)]);
	return least % LK_MOST_WINDOW;
}

/* Of all, at least one being there. Four chains: none waits for the others. */
static UInt oldest_of_all(const struct window *w)
{
	const ULong *last = w->last;
	ULong a = last[0], b = last[1], c = last[2], d = last[3];
	UInt i;

	for (i = 4; i < LK_MOST_WINDOW; i += 4) {
		a = lesser(a, last[i]);
		b = lesser(b, last[i + 1]);
		c = lesser(c, last[i + 2]);
		d = lesser(d, last[i + 3]);
	}
	return lesser(lesser(a, b), lesser(c, d)) % LK_MOST_WINDOW;
}

/* Is there something to tell of the page's place in the order of its class? */
static Bool is_to_touch(struct window *w, UInt i)
{
	UInt class = class_of(w->page[i]);
	Bool is_used = w->used >> i & 1;

	w->used &= ~(1ULL << i);
	if (!lk_opt.classes || !is_used || w->newest[class] == i)
		return False;
	w->newest[class] = i;
	return True;
}

/* The page of this place leaves. */
static void put_leave(struct window *w, UInt i)
{
	ULong table = w - windows;
	ULong addr = w->page[i] << LK_PAGE_SHIFT | i;
	ULong others = --w->n;
	ULong touched = is_to_touch(w, i) ? LK_TOUCHED : 0;

	w->taken &= ~(1ULL << i);
	w->of_class[class_of(w->page[i])] &= ~(1ULL << i);
	w->held[hint_of(w->page[i])]--;
	w->page[i] = ~0ULL;
	w->last[i] = ~0ULL;
	if (w->count[i])
		lk_out = lk_put_record(
			lk_out,
			addr | (ULong)LK_REPEATS << LK_KIND_SHIFT |
				table << LK_SIZE_SHIFT,
			w->count[i]);
	lk_out = lk_put_record(lk_out,
			       addr | others << LK_OTHERS_SHIFT |
				       (ULong)LK_REPEATS << LK_KIND_SHIFT |
				       (LK_LEAVES | touched | table)
					       << LK_SIZE_SHIFT,
			       w->lines[i] & ~w->own[i]);
}

/* Tells in which order pages of a class were last used. */
static void put_touches(struct window *w, UInt class)
{
	ULong table = w - windows;
	ULong rest;

	while ((rest = w->used & w->of_class[class])) {
		UInt i = oldest(w, rest);

		if (is_to_touch(w, i))
			lk_out = lk_put_record(
				lk_out,
				w->page[i] << LK_PAGE_SHIFT | i |
					(ULong)LK_REPEATS << LK_KIND_SHIFT |
					(LK_TOUCHED | table) << LK_SIZE_SHIFT,
				0);
	}
}

void lk_empty_windows(void)
{
	UInt table;

	for (table = 0; table < LK_TABLES; table++)
		while (windows[table].taken)
			put_leave(&windows[table],
				  oldest_of_all(&windows[table]));
}

static inline Bool is_full(const struct window *w, UInt class)
{
	return w->n >= lk_opt.window ||
	       (UInt)__builtin_popcountll(w->of_class[class]) >=
		       lk_opt.class_pages;
}

/* Brings in a page that is not there; its place. */
static UInt enter(struct window *w, ULong addr, ULong what)
{
	UInt class = class_of(page_of(addr));
	UInt i;

	if (lk_out_end - lk_out < room_for(lk_opt.window)) {
		lk_empty_windows();
		lk_next_frame();
	}
	while (is_full(w, class))
		put_leave(w, oldest_of_all(w));
	if (lk_opt.classes)
		put_touches(w, class);
	i = __builtin_ctzll(~w->taken);
	w->n++;
	w->taken |= 1ULL << i;
	w->of_class[class] |= 1ULL << i;
	w->newest[class] = i;
	lk_out = lk_put_record(lk_out, addr | (what & ~LK_ADDR_MASK),
			       (what & LK_ADDR_MASK) |
				       (ULong)i << LK_PREV_SHIFT);
	w->page[i] = page_of(addr);
	w->count[i] = 0;
	w->lines[i] = 0;
	w->own[i] = lk_line_bit(addr);
	w->hint[hint_of(page_of(addr))] = i;
	w->held[hint_of(page_of(addr))]++;
	return i;
}

/* The page's place though no hint leads there, or NOWHERE. */
static UInt search(struct window *w, ULong page)
{
	UInt i;

	for (i = 0; i < lk_opt.window; i++)
		if (w->page[i] == page) {
			w->hint[hint_of(page)] = i;
			return i;
		}
	return NOWHERE;
}

static inline UInt place_of(struct window *w, ULong page)
{
	UInt i = w->hint[hint_of(page)];

	if (w->page[i] == page)
		return i;
	return w->held[hint_of(page)] ? search(w, page) : NOWHERE;
}

/* Leaves out `n` accesses to the page at this place. */
static inline void leave_out(struct window *w, UInt i, ULong n, ULong lines)
{
	w->count[i] += n;
	w->used |= (ULong)(n != 0) << i;
	w->lines[i] |= lines;
	w->last[i] = ++now * LK_MOST_WINDOW + i;
}

/*
 * One access, and `more` to the same page right after it. Does it bring the
 * page in?
 */
Bool lk_window_access(UInt kind, ULong addr, ULong what, ULong more,
		      ULong lines)
{
	struct window *w = &windows[lk_opt.table[kind]];
	UInt i = place_of(w, page_of(addr));
	Bool enters = i == NOWHERE;

	if (enters)
		i = enter(w, addr, what);
	leave_out(w, i, more + !enters, lines);
	return enters;
}

/* Where the logged accesses go over to another page, and the lines between. */
static UInt starts[LK_ACCESSES + 2];
static ULong masks[LK_ACCESSES + 1];

/* How often they do; without a branch, which nobody could foretell. */
static UInt find_runs(const ULong *addr, UInt n)
{
	UInt found = 0; /* the first access begins a run: number 1 */
	ULong mask = 0;
	ULong last = ~addr[0];
	UInt i;

	for (i = 0; i < n; i++) {
		ULong same = -(ULong)(page_of(addr[i] ^ last) == 0);

		last = addr[i];
		found += 1 + (UInt)same;
		mask = (mask & same) | lk_line_bit(last);
		masks[found] = mask;
		starts[found + 1] = i + 1;
	}
	return found;
}

/* The runs from `run` on that begin before an access; the next one. */
static UInt put_runs(struct window *w, UInt run, UInt last, UInt until)
{
	const ULong *addr = LK_ACCESSES_FIRST;

	for (; run <= last && starts[run] < until; run++) {
		const ULong *access = &addr[starts[run]];
		UInt n = starts[run + 1] - starts[run];
		UInt i = place_of(w, page_of(*access));

		if (i == NOWHERE) {
			i = enter(w, *access, lk_what_of(access));
			n--;
			lk_note_visit(access);
		}
		leave_out(w, i, n, masks[run]);
	}
	return run;
}

/*
 * Makes records of the logs, where loads and stores share a table, fetches
 * have another, and each logged access takes place. Counts what there is.
 */
void lk_filter_windows(ULong totals[LK_TABLES])
{
	const ULong *addr = LK_ACCESSES_FIRST;
	const struct lk_group *group = lk_groups;
	const struct lk_group *end = lk_groups_end;
	struct window *data = &windows[lk_opt.table[LK_LOAD]];
	struct window *fetch = &windows[lk_opt.table[LK_FETCH]];
	UInt n = lk_accesses_end - addr;
	UInt last = n ? find_runs(addr, n) : 0;
	UInt run = 1;
	ULong stores = 0;

	starts[1] = 0;
	while (group < end) {
		const struct lk_group *first = group;
		ULong page = page_of(lk_group_ip(first));
		UInt i = place_of(fetch, page);
		ULong instructions = 0;
		ULong lines = 0;

		for (; group < end && page_of(lk_group_ip(group)) == page;
		     group++) {
			instructions += lk_group_size(group);
			stores += group->before >> LK_STORES_SHIFT;
			lines |= group->lines;
		}
		totals[LK_FETCH] += instructions;
		if (!lk_opt.fetches || !instructions)
			continue;
		if (i == NOWHERE) {
			/* In the order of the program. */
			run = put_runs(data, run, last,
				       lk_before(first) - addr);
			i = enter(fetch, lk_group_ip(first),
				  lk_group_what(first));
			instructions--;
		}
		leave_out(fetch, i, instructions, lines);
	}
	put_runs(data, run, last, n);
	totals[LK_STORE] += stores;
	totals[LK_LOAD] += n - stores;
}

void lk_windows_init(void)
{
	UInt table;
	UInt i;

	tl_assert(room_for(LK_SMALL_WINDOW) <= LK_FEWEST_RECORDS);
	for (table = 0; table < LK_TABLES; table++)
		for (i = 0; i < LK_MOST_WINDOW; i++)
			windows[table].page[i] = windows[table].last[i] =
				~0ULL;
}
