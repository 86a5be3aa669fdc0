// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What is known of an access or a group of instructions when it is
 * instrumented. The added code logs it as a number: a processor stores one of
 * 32 bits in a single instruction, where 64 bits have to be loaded before.
 */

#include "lookaside.h"

#include "pub_tool_hashtable.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_mallocfree.h"

struct lk_site *lk_sites;
static UInt used;
static UInt room;

/* Where code is instrumented again, it has the numbers that it had. */
struct node {
	struct node *next;
	UWord key;
	UInt number;
};
static VgHashTable *numbers;

static Word differ(const void *a, const void *b)
{
	const struct lk_site *one = &lk_sites[((const struct node *)a)->number];
	const struct lk_site *other =
		&lk_sites[((const struct node *)b)->number];

	return VG_(memcmp)(one, other, sizeof(*one));
}

static void make_room(void)
{
	if (used + 1 < room)
		return;
	room = room ? 2 * room : 1024;
	lk_sites = VG_(realloc)("lookaside.sites", lk_sites,
				room * sizeof(*lk_sites));
}

/* The site's number, which 31 bits have room for. */
UInt lk_number_of(struct lk_site site)
{
	struct node wanted = { .key = site.what ^ site.lines };
	struct node *node;

	make_room();
	/* It stays where it is if there was none like it. */
	wanted.number = used;
	lk_sites[used] = site;
	node = VG_(HT_gen_lookup)(numbers, &wanted, differ);
	if (node)
		return node->number;
	tl_assert(used < 0x7fffffff);
	node = VG_(malloc)("lookaside.sites.node", sizeof(*node));
	*node = wanted;
	VG_(HT_add_node)(numbers, node);
	return used++;
}

void lk_sites_init(void)
{
	numbers = VG_(HT_construct)("lookaside.sites");
	tl_assert(lk_number_of((struct lk_site){ LK_WHAT(0, LK_REPEATS, 0) }) ==
		  LK_NOT_TAKEN);
}
