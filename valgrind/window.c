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

/*
 * What is added up is so in two banks, which accesses take in turns: a sum that
 * was just stored can be loaded some cycles later only, and accesses to one
 * page mostly follow each other.
 */
#define BANKS 2
struct place {
	ULong page;
	ULong own;	    /* the recorded access's line, as a bit */
	ULong count[BANKS]; /* left out */
	ULong lines[BANKS]; /* touched, a bit each */
	ULong heard;	    /* of the count, when the model last heard of the page */
} __attribute__((aligned(64)));

struct window {
	struct place at[LK_MOST_WINDOW];
	UInt last[LK_MOST_WINDOW]; /* time of the last access, plus the place */
	UInt n;
	ULong taken;                         /* places, a bit each */
	ULong of_class[1 << LK_MAX_CLASSES]; /* taken ones of its pages */
	UChar n_of_class[1 << LK_MAX_CLASSES];
	/* The last one of the class that the model heard of. */
	UChar newest[1 << LK_MAX_CLASSES];
	UChar hint[HINTS];
	UChar held[HINTS]; /* pages of the window that it is a hint at */
} __attribute__((aligned(64)));

static struct window windows[LK_TABLES];
/*
 * When: accesses since the windows were empty, times the places. There is room
 * for those of all fillings after which windows are emptied.
 */
static UInt now;
#define NEVER (~0U)

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

static inline UInt lesser(UInt a, UInt b)
{
	return a < b ? a : b;
}

/* Of some places, not none: the page whose last access lies furthest back. */
static UInt oldest(const struct window *w, ULong places)
{
	UInt least = NEVER;

	for (; places; places &= places - 1)
		least = lesser(least, w->last[__builtin_ctzll(places)]);
	return least % LK_MOST_WINDOW;
}

/*
 * Of all, at least one being there. Four chains: none waits for the others.
 * Vectors would wait for what was just stored in a part of them.
 */
static UInt oldest_of_all(const struct window *w)
{
	const UInt *last = w->last;
	UInt a = last[0], b = last[1], c = last[2], d = last[3];
	UInt i;

	for (i = 4; i < lk_opt.window; i += 4) {
		a = lesser(a, last[i]);
		b = lesser(b, last[i + 1]);
		c = lesser(c, last[i + 2]);
		d = lesser(d, last[i + 3]);
	}
	return lesser(lesser(a, b), lesser(c, d)) % LK_MOST_WINDOW;
}

static inline ULong count_of(const struct place *place)
{
	return place->count[0] + place->count[1];
}

/* Since the model last heard of the page. */
static inline Bool is_used(const struct window *w, UInt i)
{
	return count_of(&w->at[i]) != w->at[i].heard;
}

/* Is there something to tell of the page's place in the order of its class? */
static inline Bool is_to_touch(struct window *w, UInt i)
{
	UInt class = class_of(w->at[i].page);

	if (!lk_opt.classes || !is_used(w, i) || w->newest[class] == i)
		return False;
	w->newest[class] = i;
	return True;
}

/* The caller has made room in the frame. */
static inline void put(ULong w0, ULong w1)
{
	lk_out->w0 = w0;
	lk_out->w1 = w1;
	lk_out++;
}

/* The page of this place leaves. */
static void put_leave(struct window *w, UInt i)
{
	struct place *place = &w->at[i];
	ULong table = w - windows;
	UInt class = class_of(place->page);
	ULong addr = place->page << LK_PAGE_SHIFT | i |
		     (ULong)LK_REPEATS << LK_KIND_SHIFT;
	ULong others = --w->n;
	ULong touched = is_to_touch(w, i) ? LK_TOUCHED : 0;

	w->taken &= ~(1ULL << i);
	w->of_class[class] &= ~(1ULL << i);
	w->n_of_class[class]--;
	w->held[hint_of(place->page)]--;
	w->last[i] = NEVER;
	place->page = ~0ULL;
	if (count_of(place))
		put(addr | table << LK_SIZE_SHIFT, count_of(place));
	put(addr | others << LK_OTHERS_SHIFT |
		    (LK_LEAVES | touched | table) << LK_SIZE_SHIFT,
	    (place->lines[0] | place->lines[1]) & ~place->own);
}

/* Tells in which order pages of a class were last used. */
static void put_touches(struct window *w, UInt class)
{
	ULong table = w - windows;
	ULong places = w->of_class[class];
	ULong used = 0;

	for (; places; places &= places - 1) {
		UInt i = __builtin_ctzll(places);

		used |= (ULong)is_used(w, i) << i;
	}
	while (used) {
		UInt i = oldest(w, used);

		if (is_to_touch(w, i))
			put(w->at[i].page << LK_PAGE_SHIFT | i |
				    (ULong)LK_REPEATS << LK_KIND_SHIFT |
				    (LK_TOUCHED | table) << LK_SIZE_SHIFT,
			    0);
		w->at[i].heard = count_of(&w->at[i]);
		used &= ~(1ULL << i);
	}
}

void lk_empty_windows(void)
{
	UInt table;

	for (table = 0; table < LK_TABLES; table++)
		while (windows[table].taken)
			put_leave(&windows[table],
				  oldest_of_all(&windows[table]));
	now = 0;
}

static inline Bool is_full(const struct window *w, UInt class)
{
	return w->n >= lk_opt.window ||
	       w->n_of_class[class] >= lk_opt.class_pages;
}

/*
 * Brings in a page that is not there; its place. The access is recorded: its
 * count begins one below none, for the caller to count it as any other.
 */
static UInt enter(struct window *w, ULong addr, ULong what)
{
	ULong page = page_of(addr);
	UInt class = class_of(page);
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
	w->n_of_class[class]++;
	w->newest[class] = i;
	put(addr | (what & ~LK_ADDR_MASK),
	    (what & LK_ADDR_MASK) | (ULong)i << LK_PREV_SHIFT);
	w->at[i] = (struct place){ .page = page,
				   .own = lk_line_bit(addr),
				   .count = { -1ULL } };
	w->hint[hint_of(page)] = i;
	w->held[hint_of(page)]++;
	return i;
}

/* The page's place though no hint leads there, or NOWHERE. */
static UInt search(struct window *w, ULong page)
{
	UInt hint = hint_of(page);
	UInt i;

	if (!w->held[hint])
		return NOWHERE;
	for (i = 0; i < lk_opt.window; i++)
		if (w->at[i].page == page) {
			w->hint[hint] = i;
			return i;
		}
	return NOWHERE;
}

static inline Bool is_at(const struct window *w, UInt i, ULong page)
{
	return __builtin_expect(w->at[i].page == page, True);
}

/* Counts `n` accesses to the page at this place; the time after that. */
static inline UInt count(struct window *w, UInt i, UInt bank, ULong n,
			 ULong lines, UInt time)
{
	w->at[i].count[bank] += n;
	w->at[i].lines[bank] |= lines;
	w->last[i] = time + i;
	return time + LK_MOST_WINDOW;
}

/*
 * One access, and `more` to the same page right after it. Does it bring the
 * page in?
 */
Bool lk_window_access(UInt kind, ULong addr, ULong what, ULong more,
		      ULong lines)
{
	struct window *w = &windows[lk_opt.table[kind]];
	UInt i = w->hint[hint_of(page_of(addr))];
	Bool enters;

	if (!is_at(w, i, page_of(addr)))
		i = search(w, page_of(addr));
	enters = i == NOWHERE;
	if (enters)
		i = enter(w, addr, what);
	now = count(w, i, 0, 1 + more, lines, now);
	return enters;
}

/* The place of a logged access whose page is not where the hint leads. */
static __attribute__((noinline)) UInt bring_in(struct window *w,
						const struct lk_access *access)
{
	UInt i = search(w, page_of(access->addr));

	if (i == NOWHERE) {
		i = enter(w, access->addr, lk_what_of(access));
		lk_note_visit(access);
	}
	return i;
}

static inline UInt put_access(struct window *w, const struct lk_access *access,
			      UInt bank, UInt time)
{
	ULong page = page_of(access->addr);
	UInt i = w->hint[hint_of(page)];

	if (!is_at(w, i, page)) {
		now = time;
		i = bring_in(w, access);
		time = now;
	}
	return count(w, i, bank, 1, lk_line_bit(access->addr), time);
}

/*
 * Logged accesses, each counted by itself: to put those of a page together
 * takes branches that nobody can foretell.
 */
static __attribute__((noinline)) void
put_accesses(struct window *w, const struct lk_access *access,
	     const struct lk_access *end)
{
	UInt time = now;

	for (; access + 1 < end; access += BANKS) {
		time = put_access(w, access, 0, time);
		time = put_access(w, access + 1, 1, time);
	}
	if (access < end)
		time = put_access(w, access, 0, time);
	now = time;
}

/* The first access that the windows have not seen. */
static const struct lk_access *unseen;

/*
 * In the order of the program, but for those that follow to the same page: if
 * the windows are emptied now, that page would be recorded again.
 */
static void put_unseen(const struct lk_access *end)
{
	if (unseen >= end)
		return;
	while (end < lk_accesses_end &&
	       page_of(end->addr) == page_of(end[-1].addr))
		end++;
	put_accesses(&windows[lk_opt.table[LK_LOAD]], unseen, end);
	unseen = end;
}

/* The place of a group whose page is not where the hint leads. */
static __attribute__((noinline)) UInt fetch_in(struct window *w,
						const struct lk_group *group)
{
	const struct lk_site *site = &lk_sites[group->site];
	UInt i = search(w, page_of(lk_ip_of(site)));

	if (i != NOWHERE)
		return i;
	put_unseen(group->before);
	return enter(w, lk_ip_of(site), site->what);
}

static inline UInt put_group(struct window *w, const struct lk_group *group,
			     const struct lk_site *site, UInt bank, UInt time)
{
	ULong page = page_of(lk_ip_of(site));
	UInt i = w->hint[hint_of(page)];

	if (!site->instructions || !lk_opt.fetches)
		return time;
	if (!is_at(w, i, page)) {
		now = time;
		i = fetch_in(w, group);
		time = now;
	}
	return count(w, i, bank, site->instructions, site->lines, time);
}

/*
 * Makes records of the logs, where loads and stores share a table, fetches
 * have another, and each logged access takes place. Counts what there is.
 */
void lk_filter_windows(ULong totals[LK_TABLES])
{
	struct window *w = &windows[lk_opt.table[LK_FETCH]];
	const struct lk_group *group = lk_groups;
	const struct lk_group *end = lk_groups_end;
	const struct lk_site *sites = lk_sites;
	ULong instructions = 0;
	ULong stores = 0;
	UInt time = now;

	unseen = LK_ACCESSES_FIRST;
	for (; group < end; group++) {
		const struct lk_site *site = &sites[group->site];

		instructions += site->instructions;
		stores += site->stores;
		time = put_group(w, group, site, (group - lk_groups) % BANKS,
				 time);
	}
	now = time;
	put_unseen(lk_accesses_end);
	totals[LK_FETCH] += instructions;
	totals[LK_STORE] += stores;
	totals[LK_LOAD] += lk_accesses_end - LK_ACCESSES_FIRST - stores;
}

void lk_windows_init(void)
{
	UInt table;
	UInt i;

	tl_assert(room_for(LK_SMALL_WINDOW) <= LK_FEWEST_RECORDS);
	tl_assert((ULong)LK_FILLINGS * (LK_ACCESSES + LK_GROUPS + LK_MORE) *
			  LK_MOST_WINDOW <
		  1ULL << 32);
	for (table = 0; table < LK_TABLES; table++)
		for (i = 0; i < LK_MOST_WINDOW; i++) {
			windows[table].at[i].page = ~0ULL;
			windows[table].last[i] = NEVER;
		}
}
