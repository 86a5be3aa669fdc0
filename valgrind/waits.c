// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which instructions' visits wait for each other: a load that brings a page
 * into its window, at an address that comes from what an earlier such load
 * read, can't begin before that one is done.
 *
 * Each visit is put on a level: one above the visit that its address comes
 * from, be it by a later load of the same page, or above all that no core
 * would still be executing. Visits of one level can be under way at a time.
 * One that opens a level, and owes it to an address, is counted as waiting.
 */

#include "log.h"

#include "pub_tool_hashtable.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_mallocfree.h"

/*
 * Instructions that a core executes ahead of one that waits, at the most: 512
 * in Golden Cove (Intel, 64 and IA-32 Architectures Optimization Reference
 * Manual, "Golden Cove Microarchitecture"), the largest reorder buffer of those
 * that Lookaside has presets for. The more they are, the fewer visits are said
 * to wait.
 */
#define AHEAD 512
/* Loads between a visit and the one that its address comes from, at most. */
#define STEPS 64

/* Pages whose latest visits are kept apart; others push each other out. */
#define PAGES 1024

struct site {
	struct site *next;
	UWord ip;
	ULong visits;
	ULong waits;
};
static VgHashTable *sites;
/* Those met last, by instruction. */
#define RECENT 1024
static struct site *recent[RECENT];

/* Of the present filling of the log. */
static UInt level_of[LK_ACCESSES]; /* by place in the log; 0: no visit */
static UInt visited[LK_ACCESSES];
static UInt visits;
static UInt latest[PAGES]; /* visit of a page: 1 + its place in the log */
static UInt retired; /* so many visits are; the highest level of these */
static UInt retired_level;
static UInt highest;
static UInt ahead; /* accesses among AHEAD instructions */

static UInt place_of(const struct lk_access *access)
{
	return access - LK_ACCESSES_FIRST;
}

static UInt latest_of(ULong addr)
{
	return addr >> LK_PAGE_SHIFT & (PAGES - 1);
}

static UInt accesses_ahead(void)
{
	const struct lk_group *group;
	ULong instructions = 1;

	for (group = lk_groups; group < lk_groups_end; group++)
		instructions += lk_sites[group->site].instructions;
	return (ULong)AHEAD * place_of(lk_accesses_end) / instructions;
}

/* The level of the visit that brought in what an access reads; 0: of none. */
static UInt level_read(const struct lk_access *access)
{
	UInt at = latest[latest_of(access->addr)];

	if (!at || at > 1 + place_of(access) ||
	    (LK_ACCESSES_FIRST[at - 1].addr ^ access->addr) >> LK_PAGE_SHIFT)
		return 0;
	return level_of[at - 1];
}

/* The level that must be done before an access's address is known; 0: none. */
static UInt origin_level(const struct lk_access *access)
{
	UInt level = 0;
	UInt i;

	for (i = 0; i < STEPS; i++) {
		access = lk_origin_of(access);
		if (!access)
			break;
		if (level_read(access) > level)
			level = level_read(access);
		/* It takes in what that one waited for. */
		if (level_of[place_of(access)])
			break;
	}
	return level;
}

static struct site *find_site(UWord ip)
{
	struct site *site;

	if (!sites)
		sites = VG_(HT_construct)("lookaside.waits");
	site = VG_(HT_lookup)(sites, ip);
	if (site)
		return site;
	site = VG_(calloc)("lookaside.waits.site", 1, sizeof(*site));
	site->ip = ip;
	VG_(HT_add_node)(sites, site);
	return site;
}

static struct site *site_of(UWord ip)
{
	struct site **site = &recent[ip % RECENT];

	if (!*site || (*site)->ip != ip)
		*site = find_site(ip);
	return *site;
}

/* A logged load has brought in a page. */
void lk_waits_visit(const struct lk_access *access)
{
	UInt at = place_of(access);
	struct site *site = site_of(lk_what_of(access) & LK_ADDR_MASK);
	UInt origin = origin_level(access);
	UInt level;

	if (!visits)
		ahead = accesses_ahead();
	for (; retired < visits && visited[retired] + ahead < at; retired++)
		if (level_of[visited[retired]] > retired_level)
			retired_level = level_of[visited[retired]];
	level = 1 + (origin > retired_level ? origin : retired_level);
	site->visits++;
	if (level > highest) {
		highest = level;
		site->waits += origin > retired_level;
	}
	level_of[at] = level;
	latest[latest_of(access->addr)] = 1 + at;
	visited[visits++] = at;
}

/* The log is emptied: what comes is not told from what was in it. */
void lk_waits_emptied(void)
{
	while (visits) {
		UInt at = visited[--visits];

		level_of[at] = latest[latest_of(LK_ACCESSES_FIRST[at].addr)] = 0;
	}
	retired = retired_level = highest = 0;
	VG_(memset)(lk_flow_registers, 0, sizeof(lk_flow_registers));
}

void lk_forget_waits(void)
{
	if (sites)
		VG_(HT_destruct)(sites, VG_(free));
	sites = NULL;
	VG_(memset)(recent, 0, sizeof(recent));
}

/* Of all instructions with visits, also where none waits: that is known too. */
void lk_send_waits(ThreadId tid)
{
	const struct site *site;
	HChar json[120];
	UInt len;

	lk_filter();
	if (!sites)
		return;
	VG_(HT_ResetIter)(sites);
	while ((site = VG_(HT_Next)(sites))) {
		len = VG_(snprintf)(json, sizeof(json),
				    "{\"waits\":{\"ip\":%lu,\"visits\":%llu,"
				    "\"waits\":%llu}}",
				    site->ip, site->visits, site->waits);
		lk_send_event(tid, json, len);
	}
}
