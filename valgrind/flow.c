// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where addresses come from: for each logged access the load, logged before
 * it, that its address was computed from.
 *
 * Within a superblock that is known when it is instrumented. From one to the
 * next it goes through the program's sixteen registers: for each of them the
 * added code keeps in lk_flow_registers where in the log the load stands that
 * its value came from. Values that go through memory or other registers count
 * as read there.
 */

#include "generate.h"

#include "pub_tool_guest.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_mallocfree.h"

ULong lk_flow_registers[LK_REGISTERS];

static const struct lk_source nothing;

void lk_flow_begin(struct gen *g, const IRSB *in)
{
	UInt i;

	g->temps = VG_(calloc)("lookaside.flow", in->tyenv->types_used + 1,
			       sizeof(*g->temps));
	for (i = 0; i < LK_REGISTERS; i++)
		g->registers[i].registers = 1U << i;
}

void lk_flow_end(struct gen *g)
{
	VG_(free)(g->temps);
}

/* The register that guest state at `offset` is a part of, or LK_REGISTERS. */
static UInt register_at(Int offset)
{
	Int first = offsetof(VexGuestArchState, guest_RAX);
	UInt i = (UInt)(offset - first) / sizeof(ULong);

	return offset >= first && i < LK_REGISTERS ? i : LK_REGISTERS;
}

static struct lk_source join(struct lk_source a, struct lk_source b)
{
	struct lk_source both = nothing;

	/* What this superblock has loaded is newer than what it found. */
	both.access = a.access > b.access ? a.access : b.access;
	if (!both.access)
		both.registers = a.registers | b.registers;
	return both;
}

static struct lk_source source_of(const struct gen *g, const IRExpr *e);

static struct lk_source source_of_all(const struct gen *g, IRExpr *const *args)
{
	struct lk_source all = nothing;

	/* Special arguments, of dirty helpers, are no values. */
	for (; *args; args++)
		if (!is_IRExpr_VECRET_or_GSPTR(*args))
			all = join(all, source_of(g, *args));
	return all;
}

/* Of anything but a load. */
static struct lk_source source_of(const struct gen *g, const IRExpr *e)
{
	UInt i;

	switch (e->tag) {
	case Iex_RdTmp:
		return g->temps[e->Iex.RdTmp.tmp];
	case Iex_Get:
		i = register_at(e->Iex.Get.offset);
		return i < LK_REGISTERS ? g->registers[i] : nothing;
	case Iex_Unop:
		return source_of(g, e->Iex.Unop.arg);
	case Iex_Binop:
		return join(source_of(g, e->Iex.Binop.arg1),
			    source_of(g, e->Iex.Binop.arg2));
	case Iex_Triop:
		return join(source_of(g, e->Iex.Triop.details->arg2),
			    source_of(g, e->Iex.Triop.details->arg3));
	case Iex_ITE:
		return join(source_of(g, e->Iex.ITE.cond),
			    join(source_of(g, e->Iex.ITE.iftrue),
				 source_of(g, e->Iex.ITE.iffalse)));
	case Iex_CCall:
		return source_of_all(g, e->Iex.CCall.args);
	default:
		return nothing;
	}
}

/* What a register's place in lk_flow_registers held at entry. */
static IRExpr *entered_with(struct gen *g, UInt i)
{
	if (!g->entered_with[i])
		g->entered_with[i] =
			load(g, address_of(&lk_flow_registers[i]));
	return g->entered_with[i];
}

static IRExpr *later_of(struct gen *g, IRExpr *a, IRExpr *b)
{
	IRTemp less = newIRTemp(g->out->tyenv, Ity_I1);

	addStmtToIRSB(g->out, IRStmt_WrTmp(less, IRExpr_Binop(Iop_CmpLT64U, a,
							      b)));
	return bind(g, IRExpr_ITE(IRExpr_RdTmp(less), b, a));
}

/* Where in the log of accesses a source stands; NULL: nowhere. */
static IRExpr *place_of(struct gen *g, struct lk_source source)
{
	IRExpr *place = NULL;
	UInt i;

	if (source.access)
		return later(g, g->accesses_end,
			     (source.access - 1) * sizeof(struct lk_access));
	for (i = 0; i < LK_REGISTERS; i++) {
		if (!(source.registers >> i & 1))
			continue;
		place = place ? later_of(g, place, entered_with(g, i)) :
				entered_with(g, i);
	}
	return place;
}

/* Where in the log the load stands that a value was computed from last, or NULL. */
IRExpr *lk_flow_origin(struct gen *g, const IRExpr *value)
{
	return place_of(g, source_of(g, value));
}

static void put(struct gen *g, const IRStmt *st)
{
	UInt i = register_at(st->Ist.Put.offset);
	const IRExpr *data = st->Ist.Put.data;
	struct lk_source source;
	IRExpr *place;

	if (i == LK_REGISTERS)
		return;
	source = source_of(g, data);
	/* A part of it; the rest stays. */
	if (sizeofIRType(typeOfIRExpr(g->out->tyenv, data)) < sizeof(ULong))
		source = join(source, g->registers[i]);
	if (source.access == g->registers[i].access &&
	    source.registers == g->registers[i].registers)
		return;
	/* Before it is overwritten; VEX drops it where nobody asks for it. */
	entered_with(g, i);
	g->registers[i] = source;
	place = place_of(g, source);
	store(g, address_of(&lk_flow_registers[i]), place ? place : u64(0));
}

/* Follows a statement; `loaded`: the access that it logged a load as, or 0. */
void lk_flow_statement(struct gen *g, const IRStmt *st, UInt loaded)
{
	struct lk_source from_memory = { .access = loaded };
	const IRDirty *dirty;
	const IRCAS *cas;

	switch (st->tag) {
	case Ist_WrTmp:
		g->temps[st->Ist.WrTmp.tmp] =
			loaded ? from_memory : source_of(g, st->Ist.WrTmp.data);
		break;
	case Ist_LoadG:
		g->temps[st->Ist.LoadG.details->dst] = from_memory;
		break;
	case Ist_Dirty:
		dirty = st->Ist.Dirty.details;
		if (dirty->tmp != IRTemp_INVALID)
			g->temps[dirty->tmp] =
				loaded ? from_memory :
					 source_of_all(g, dirty->args);
		break;
	case Ist_CAS:
		cas = st->Ist.CAS.details;
		g->temps[cas->oldLo] = from_memory;
		if (cas->oldHi != IRTemp_INVALID)
			g->temps[cas->oldHi] = from_memory;
		break;
	case Ist_LLSC:
		g->temps[st->Ist.LLSC.result] = from_memory;
		break;
	case Ist_Put:
		put(g, st);
		break;
	default:
		break;
	}
}
