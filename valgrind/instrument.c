// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What is added to the program's code: it logs, and nothing more.
 *
 * An access stores its address and the number of what it is; a group of
 * instructions stores a number of its own and where the log of accesses stood
 * before it. A superblock looks once, where it is entered, whether the
 * logs are full, and then calls lk_filter, which makes the records. The ends
 * of the logs are brought up to date before each exit, so a fault costs at
 * most the accesses since the last one.
 */

#include "generate.h"

#include "pub_tool_libcassert.h"
#include "pub_tool_machine.h"

static Bool filtered(void)
{
	return lk_opt.granularity != LK_BYTE;
}

/* Data and instructions go through one table. */
static Bool unified(void)
{
	return lk_opt.table[LK_FETCH] == lk_opt.table[LK_LOAD];
}

static void begin_superblock(struct gen *g)
{
	IRTemp full = newIRTemp(g->out->tyenv, Ity_I1);
	IRDirty *filter;

	addStmtToIRSB(g->out, IRStmt_WrTmp(full,
		IRExpr_Binop(Iop_CmpLE64U, address_of(LK_GROUPS_FULL),
			     load(g, address_of(&lk_groups_end)))));
	filter = unsafeIRDirty_0_N(0, "lk_filter",
				   VG_(fnptr_to_fnentry)(lk_filter),
				   mkIRExprVec_0());
	filter->guard = IRExpr_RdTmp(full);
	addStmtToIRSB(g->out, IRStmt_Dirty(filter));
	g->groups_end = load(g, address_of(&lk_groups_end));
	g->accesses_end = load(g, address_of(&lk_accesses_end));
}

/* Before an exit. */
static void tell_ends(struct gen *g)
{
	if (g->accesses != g->told_accesses)
		store(g, address_of(&lk_accesses_end),
		      later(g, g->accesses_end,
			    g->accesses * sizeof(struct lk_access)));
	if (g->groups != g->told_groups)
		store(g, address_of(&lk_groups_end),
		      later(g, g->groups_end,
			    g->groups * sizeof(struct lk_group)));
	g->told_accesses = g->accesses;
	g->told_groups = g->groups;
}

static Bool is_always(const IRExpr *guard)
{
	return !guard || (guard->tag == Iex_Const && guard->Iex.Const.con->Ico.U1);
}

/*
 * One access; `guard` (NULL = always) says whether it takes place. Its number
 * in the superblock, from 1; 0 where it never does.
 */
static UInt put_data(struct gen *g, enum lk_kind kind, IRExpr *addr,
		     UInt size, IRExpr *guard)
{
	ULong at = g->accesses * sizeof(struct lk_access);
	IRExpr *origin;
	IRExpr *site;

	tl_assert(g->accesses < LK_MORE);
	if (guard && guard->tag == Iex_Const && !guard->Iex.Const.con->Ico.U1)
		return 0;
	site = u64(lk_number_of((struct lk_site){
		LK_WHAT(g->ip, kind, size < 255 ? size : 255) }));
	if (!is_always(guard)) {
		site = bind(g, IRExpr_ITE(guard, site, u64(LK_NOT_TAKEN)));
		store(g, address_of(&lk_some_not_taken), u64(1));
	}
	store(g, later(g, g->accesses_end, at), addr);
	/* With an origin of 0 above it. */
	at += offsetof(struct lk_access, site);
	store(g, later(g, g->accesses_end, at), site);
	origin = lk_opt.waits ? lk_flow_origin(g, addr) : NULL;
	at += offsetof(struct lk_access, origin) -
	      offsetof(struct lk_access, site);
	if (origin)
		store(g, later(g, g->accesses_end, at), low_half(g, origin));
	return ++g->accesses;
}

static Bool touches_memory(const IRStmt *st)
{
	switch (st->tag) {
	case Ist_WrTmp:
		return st->Ist.WrTmp.data->tag == Iex_Load;
	case Ist_Dirty:
		return st->Ist.Dirty.details->mFx != Ifx_None;
	case Ist_Store:
	case Ist_StoreG:
	case Ist_LoadG:
	case Ist_CAS:
	case Ist_LLSC:
		return True;
	default:
		return False;
	}
}

static Bool stores(const IRStmt *st)
{
	const IRDirty *d;

	switch (st->tag) {
	case Ist_Store:
	case Ist_CAS:
		return True;
	case Ist_StoreG:
		return is_always(st->Ist.StoreG.details->guard);
	case Ist_LLSC:
		return st->Ist.LLSC.storedata != NULL;
	case Ist_Dirty:
		d = st->Ist.Dirty.details;
		return (d->mFx == Ifx_Write || d->mFx == Ifx_Modify) &&
		       is_always(d->guard);
	default:
		return False;
	}
}

/*
 * Begins a group at `st[at]`: the instructions from there on that are fetched
 * from the same page (or line) with nothing between that the filter would
 * mind. No instruction where an exit has split one.
 */
static void put_group(struct gen *g, const IRSB *in, Int at)
{
	const IRStmt *first = in->stmts[at];
	Bool split = first->tag != Ist_IMark;
	Bool touched = False;
	UInt n = !split;
	UInt stored = 0;
	ULong lines = split ? 0 : lk_line_bit(g->ip);
	ULong group = g->groups * sizeof(struct lk_group);
	struct lk_site site;
	Int i;

	for (i = at; i < in->stmts_used; i++) {
		const IRStmt *st = in->stmts[i];

		if (st->tag == Ist_Exit)
			break;
		if (st->tag == Ist_IMark && i > at) {
			if (split || !filtered() ||
			    (unified() && touched) ||
			    (st->Ist.IMark.addr ^ g->ip) >> lk_unit_shift())
				break;
			n++;
			lines |= lk_line_bit(st->Ist.IMark.addr);
		}
		touched |= touches_memory(st);
		stored += stores(st);
	}
	tl_assert(g->groups < LK_MORE);
	g->groups++;
	g->grouped = split ? 0 : n - 1;
	g->open = True;
	site = (struct lk_site){
		LK_WHAT(g->ip, LK_FETCH, split ? 0 : first->Ist.IMark.len),
		lines, stored, n };
	store(g, later(g, g->groups_end, group), u64(lk_number_of(site)));
	group += offsetof(struct lk_group, before);
	store(g, later(g, g->groups_end, group),
	      later(g, g->accesses_end,
		    g->accesses * sizeof(struct lk_access)));
}

static void put_instruction(struct gen *g, const IRSB *in, Int at)
{
	if (!g->groups_end)
		begin_superblock(g);
	g->ip = in->stmts[at]->Ist.IMark.addr;
	if (g->grouped)
		g->grouped--;
	else
		put_group(g, in, at);
}

static UInt size_of(struct gen *g, const IRExpr *data)
{
	return sizeofIRType(typeOfIRExpr(g->out->tyenv, data));
}

/* These give the number of the load that they log, as put_data does. */

static UInt put_dirty(struct gen *g, const IRDirty *d)
{
	UInt loaded = 0;

	if (d->mFx == Ifx_Read || d->mFx == Ifx_Modify)
		loaded = put_data(g, LK_LOAD, d->mAddr, d->mSize, d->guard);
	if (d->mFx == Ifx_Write || d->mFx == Ifx_Modify)
		put_data(g, LK_STORE, d->mAddr, d->mSize, d->guard);
	return loaded;
}

static UInt put_cas(struct gen *g, const IRCAS *cas)
{
	UInt size = size_of(g, cas->dataLo) * (cas->dataHi ? 2 : 1);
	UInt loaded = put_data(g, LK_LOAD, cas->addr, size, NULL);

	put_data(g, LK_STORE, cas->addr, size, NULL);
	return loaded;
}

static UInt put_load_g(struct gen *g, const IRLoadG *lg)
{
	IRType result, source;

	typeOfIRLoadGOp(lg->cvt, &result, &source);
	return put_data(g, LK_LOAD, lg->addr, sizeofIRType(source), lg->guard);
}

static UInt put_llsc(struct gen *g, const IRStmt *st)
{
	IRType result;

	if (st->Ist.LLSC.storedata) {
		put_data(g, LK_STORE, st->Ist.LLSC.addr,
			 size_of(g, st->Ist.LLSC.storedata), NULL);
		return 0;
	}
	result = typeOfIRTemp(g->out->tyenv, st->Ist.LLSC.result);
	return put_data(g, LK_LOAD, st->Ist.LLSC.addr, sizeofIRType(result),
			NULL);
}

static void put_statement(struct gen *g, const IRSB *in, Int at)
{
	const IRStmt *st = in->stmts[at];
	const IRExpr *data;
	const IRStoreG *sg;
	UInt loaded = 0;

	if (!g->open && touches_memory(st))
		put_group(g, in, at);
	switch (st->tag) {
	case Ist_IMark:
		put_instruction(g, in, at);
		break;
	case Ist_WrTmp:
		data = st->Ist.WrTmp.data;
		if (data->tag == Iex_Load)
			loaded = put_data(g, LK_LOAD, data->Iex.Load.addr,
					  sizeofIRType(data->Iex.Load.ty),
					  NULL);
		break;
	case Ist_Store:
		put_data(g, LK_STORE, st->Ist.Store.addr,
			 size_of(g, st->Ist.Store.data), NULL);
		break;
	case Ist_StoreG:
		sg = st->Ist.StoreG.details;
		put_data(g, LK_STORE, sg->addr, size_of(g, sg->data),
			 sg->guard);
		break;
	case Ist_LoadG:
		loaded = put_load_g(g, st->Ist.LoadG.details);
		break;
	case Ist_Dirty:
		loaded = put_dirty(g, st->Ist.Dirty.details);
		break;
	case Ist_CAS:
		loaded = put_cas(g, st->Ist.CAS.details);
		break;
	case Ist_LLSC:
		loaded = put_llsc(g, st);
		break;
	case Ist_Exit:
		tell_ends(g);
		g->open = False;
		break;
	default:
		break;
	}
	if (lk_opt.waits)
		lk_flow_statement(g, st, loaded);
}

IRSB *lk_instrument(VgCallbackClosure *closure, IRSB *in,
		    const VexGuestLayout *layout,
		    const VexGuestExtents *extents,
		    const VexArchInfo *arch, IRType guest_word,
		    IRType host_word)
{
	struct gen g = { 0 };
	Int i = 0;

	/* Our own code in the program is not the program's. */
	if (lk_is_preload(closure->readdr))
		return in;
	g.out = deepCopyIRSBExceptStmts(in);
	/* Valgrind's own preamble comes before the first instruction. */
	for (; i < in->stmts_used && in->stmts[i]->tag != Ist_IMark; i++)
		addStmtToIRSB(g.out, in->stmts[i]);
	if (lk_opt.waits)
		lk_flow_begin(&g, in);
	for (; i < in->stmts_used; i++) {
		put_statement(&g, in, i);
		addStmtToIRSB(g.out, in->stmts[i]);
	}
	tell_ends(&g);
	if (lk_opt.waits)
		lk_flow_end(&g);
	return g.out;
}
