// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What is added to the program's code.
 *
 * Each access writes its record without a branch: the record is always
 * stored at the buffer's end, and the end moves on only where the access's
 * page is not its slot's. A run of accesses ends before each exit from the
 * superblock with one test for "buffer full" and "a count has grown large",
 * which calls lk_spill. The slots and the end of the buffer are left in a
 * state that fits at every point where the program can fault, so a fault
 * costs at most the accesses of its run.
 */

#include "lookaside.h"

#include "pub_tool_libcassert.h"
#include "pub_tool_machine.h"

#define PAGE_SHIFT 12
#define LINE_SHIFT 6
#define SLOT_SHIFT 4 /* sizeof(struct lk_slot) */

struct gen {
	IRSB *out;
	Addr ip;
	/* Of the run of accesses since the last test; NULL = not loaded. */
	IRExpr *pos;
	UInt bytes; /* records after `pos` that are kept in any case */
	IRExpr *urgent; /* its sign bit asks for lk_spill */
	UInt accesses;
	IRExpr *addr[LK_TABLES]; /* the one slot of each table: no classes */
	IRExpr *count[LK_TABLES];
	/* Of the segment since the last exit. */
	UInt instructions;
	ULong loads_stores;
	IRExpr *guarded_loads_stores;
	/* Instructions whose fetches the last fetch has counted already. */
	UInt fetched;
	/* Where the last fetch of this superblock was; 0 = none yet. */
	Addr last_fetch;
};

static IRExpr *u64(ULong n)
{
	return IRExpr_Const(IRConst_U64(n));
}

static IRExpr *bind(struct gen *g, IRExpr *value)
{
	IRTemp temp = newIRTemp(g->out->tyenv, Ity_I64);

	addStmtToIRSB(g->out, IRStmt_WrTmp(temp, value));
	return IRExpr_RdTmp(temp);
}

static IRExpr *binop(struct gen *g, IROp op, IRExpr *a, IRExpr *b)
{
	return bind(g, IRExpr_Binop(op, a, b));
}

static IRExpr *unop(struct gen *g, IROp op, IRExpr *a)
{
	return bind(g, IRExpr_Unop(op, a));
}

static IRExpr *shift(struct gen *g, IROp op, IRExpr *a, UChar bits)
{
	return binop(g, op, a, IRExpr_Const(IRConst_U8(bits)));
}

static IRExpr *load(struct gen *g, IRExpr *addr)
{
	return bind(g, IRExpr_Load(Iend_LE, Ity_I64, addr));
}

static void store(struct gen *g, IRExpr *addr, IRExpr *value)
{
	addStmtToIRSB(g->out, IRStmt_Store(Iend_LE, addr, value));
}

static IRExpr *address_of(const void *p)
{
	return u64((ULong)(Addr)p);
}

static Bool filtered(void)
{
	return lk_opt.granularity != LK_BYTE;
}

static UInt unit_shift(void)
{
	return lk_opt.granularity == LK_LINE ? LINE_SHIFT : PAGE_SHIFT;
}

static void end_run(struct gen *g)
{
	IRTemp now;
	IRExpr *room;
	IRDirty *spill;
	UInt i;

	if (!g->pos)
		return;
	if (g->bytes)
		g->pos = binop(g, Iop_Add64, g->pos, u64(g->bytes));
	store(g, address_of(&lk_pos), g->pos);
	for (i = 0; i < LK_TABLES; i++) {
		if (!g->addr[i])
			continue;
		store(g, address_of(&lk_slots[i].addr), g->addr[i]);
		store(g, address_of(&lk_slots[i].count), g->count[i]);
		room = shift(g, Iop_Shl64, g->count[i], 63 - LK_COUNT_BIT);
		g->urgent = g->urgent ?
			binop(g, Iop_Or64, g->urgent, room) : room;
		g->addr[i] = g->count[i] = NULL;
	}
	/* Negative when full. */
	room = binop(g, Iop_Sub64, u64((Addr)LK_BUFFER_FULL - 1), g->pos);
	if (g->urgent)
		room = binop(g, Iop_Or64, g->urgent, room);
	now = newIRTemp(g->out->tyenv, Ity_I1);
	addStmtToIRSB(g->out, IRStmt_WrTmp(now,
		IRExpr_Binop(Iop_CmpLT64S, room, u64(0))));
	spill = unsafeIRDirty_0_N(0, "lk_spill",
				  VG_(fnptr_to_fnentry)(lk_spill),
				  mkIRExprVec_0());
	spill->guard = IRExpr_RdTmp(now);
	addStmtToIRSB(g->out, IRStmt_Dirty(spill));
	g->pos = g->urgent = NULL;
	g->bytes = g->accesses = 0;
}

static void end_segment(struct gen *g)
{
	IRExpr *counter;
	IRExpr *sum;

	end_run(g);
	if (g->instructions) {
		counter = address_of(&lk_instructions);
		sum = binop(g, Iop_Add64, load(g, counter),
			    u64(g->instructions));
		store(g, counter, sum);
	}
	if (g->loads_stores || g->guarded_loads_stores) {
		counter = address_of(&lk_loads_stores);
		sum = binop(g, Iop_Add64, load(g, counter),
			    u64(g->loads_stores));
		if (g->guarded_loads_stores)
			sum = binop(g, Iop_Add64, sum,
				    g->guarded_loads_stores);
		store(g, counter, sum);
	}
	g->instructions = 0;
	g->loads_stores = 0;
	g->guarded_loads_stores = NULL;
}

/* Where the slot of `addr` in the table is. */
static IRExpr *slot_of(struct gen *g, Int table, IRExpr *addr)
{
	struct lk_slot *first = &lk_slots[table << lk_opt.classes];
	ULong mask = (1ULL << lk_opt.classes) - 1;
	IRExpr *offset;

	if (addr->tag == Iex_Const)
		return address_of(first + ((addr->Iex.Const.con->Ico.U64 >>
					    PAGE_SHIFT) & mask));
	offset = shift(g, Iop_Shr64, addr, PAGE_SHIFT - SLOT_SHIFT);
	offset = binop(g, Iop_And64, offset, u64(mask << SLOT_SHIFT));
	return binop(g, Iop_Add64, offset, address_of(first));
}

/* Without classes: the table's one slot, kept in temporaries in a run. */
static void load_slot(struct gen *g, Int table)
{
	if (g->addr[table])
		return;
	g->addr[table] = load(g, address_of(&lk_slots[table].addr));
	g->count[table] = load(g, address_of(&lk_slots[table].count));
}

static void put_record(struct gen *g, IRExpr *w0, IRExpr *w1)
{
	store(g, binop(g, Iop_Add64, g->pos, u64(g->bytes)), w0);
	store(g, binop(g, Iop_Add64, g->pos, u64(g->bytes + 8)), w1);
}

/*
 * One access; `guard` (NULL = always) says whether it takes place. `more`
 * further accesses to the same page follow that need no record.
 */
static void put_access(struct gen *g, enum lk_kind kind, IRExpr *addr,
		       UInt size, IRExpr *guard, UInt more)
{
	ULong what = (ULong)kind << LK_KIND_SHIFT |
		     (ULong)(size < 255 ? size : 255) << LK_SIZE_SHIFT;
	Int table = lk_opt.table[kind];
	IRExpr *taken = NULL;
	IRExpr *slot = NULL;
	IRExpr *slot_addr, *slot_count;
	IRExpr *w0, *w1, *missed, *count;

	if (g->accesses == LK_RUN)
		end_run(g);
	g->accesses++;
	if (!g->pos)
		g->pos = load(g, address_of(&lk_pos));
	if (guard)
		taken = unop(g, Iop_1Sto64, guard);
	w0 = binop(g, Iop_Or64, addr, u64(what));

	if (!filtered()) {
		put_record(g, w0, u64(g->ip));
		if (!taken) {
			g->bytes += sizeof(struct lk_record);
			return;
		}
		taken = binop(g, Iop_And64, taken,
			      u64(sizeof(struct lk_record)));
		g->pos = binop(g, Iop_Add64, g->pos, taken);
		return;
	}

	if (lk_opt.classes) {
		slot = slot_of(g, table, addr);
		slot_addr = load(g, slot);
		slot_count = load(g, binop(g, Iop_Add64, slot, u64(8)));
	} else {
		load_slot(g, table);
		slot_addr = g->addr[table];
		slot_count = g->count[table];
	}

	/* All ones where another page is in the slot. */
	missed = binop(g, Iop_Xor64, addr, slot_addr);
	missed = shift(g, Iop_Shr64, missed, unit_shift());
	missed = unop(g, Iop_CmpwNEZ64, missed);
	if (taken)
		missed = binop(g, Iop_And64, missed, taken);

	w1 = shift(g, Iop_Shl64, slot_count, LK_PREV_SHIFT);
	if (lk_opt.classes)
		g->urgent = g->urgent ?
			binop(g, Iop_Or64, g->urgent, w1) : w1;
	w1 = binop(g, Iop_Or64, w1, u64(g->ip));
	put_record(g, w0, w1);
	g->pos = binop(g, Iop_Add64, g->pos,
		       binop(g, Iop_And64, missed,
			     u64(sizeof(struct lk_record))));

	count = binop(g, Iop_Add64, slot_count,
		      taken ? binop(g, Iop_And64, taken, u64(1)) : u64(1));
	count = binop(g, Iop_And64, count, unop(g, Iop_Not64, missed));
	if (more)
		count = binop(g, Iop_Add64, count, u64(more));
	if (taken)
		addr = bind(g, IRExpr_ITE(guard, addr, slot_addr));

	if (lk_opt.classes) {
		store(g, slot, addr);
		store(g, binop(g, Iop_Add64, slot, u64(8)), count);
		store(g, address_of(&lk_pos), g->pos);
	} else {
		g->addr[table] = addr;
		g->count[table] = count;
	}
}

/*
 * `n` fetches from the page that the last fetch of this superblock has put
 * into its slot: they need counting only.
 */
static void put_repeated_fetches(struct gen *g, UInt n)
{
	Int table = lk_opt.table[LK_FETCH];
	IRExpr *slot, *count, *urgent;

	if (!g->pos)
		g->pos = load(g, address_of(&lk_pos));
	if (!lk_opt.classes) {
		load_slot(g, table);
		g->count[table] = binop(g, Iop_Add64, g->count[table], u64(n));
		return;
	}
	slot = binop(g, Iop_Add64, slot_of(g, table, u64(g->ip)), u64(8));
	count = binop(g, Iop_Add64, load(g, slot), u64(n));
	store(g, slot, count);
	urgent = shift(g, Iop_Shl64, count, 63 - LK_COUNT_BIT);
	g->urgent = g->urgent ?
		binop(g, Iop_Or64, g->urgent, urgent) : urgent;
}

static void put_data(struct gen *g, enum lk_kind kind, IRExpr *addr,
		     UInt size, IRExpr *guard)
{
	ULong one = kind == LK_LOAD ? 1 : 1ULL << 32;
	IRExpr *n;

	if (guard && guard->tag == Iex_Const) {
		if (!guard->Iex.Const.con->Ico.U1)
			return;
		guard = NULL;
	}
	put_access(g, kind, addr, size, guard, 0);
	if (!guard) {
		g->loads_stores += one;
		return;
	}
	n = binop(g, Iop_And64, unop(g, Iop_1Sto64, guard), u64(one));
	g->guarded_loads_stores = g->guarded_loads_stores ?
		binop(g, Iop_Add64, g->guarded_loads_stores, n) : n;
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

/*
 * How many instructions from the one at `st[from]` on are fetched from the
 * same page (or line) with nothing between that the filter would mind.
 */
static UInt fetch_group(const IRSB *in, Int from)
{
	Addr first = in->stmts[from]->Ist.IMark.addr;
	Bool alone = lk_opt.table[LK_FETCH] != lk_opt.table[LK_LOAD];
	UInt n = 1;
	Int i;

	if (!filtered())
		return 1;
	for (i = from + 1; i < in->stmts_used; i++) {
		const IRStmt *st = in->stmts[i];

		if (st->tag == Ist_Exit || (!alone && touches_memory(st)))
			break;
		if (st->tag != Ist_IMark)
			continue;
		if ((st->Ist.IMark.addr ^ first) >> unit_shift())
			break;
		n++;
	}
	return n;
}

static void put_instruction(struct gen *g, const IRSB *in, Int at)
{
	const IRStmt *st = in->stmts[at];
	UInt n;

	g->ip = st->Ist.IMark.addr;
	g->instructions++;
	if (!lk_opt.fetches)
		return;
	if (g->fetched) {
		g->fetched--;
		return;
	}
	n = fetch_group(in, at);
	g->fetched = n - 1;
	if (filtered() && lk_opt.table[LK_FETCH] != lk_opt.table[LK_LOAD] &&
	    g->last_fetch && !((g->last_fetch ^ g->ip) >> unit_shift())) {
		put_repeated_fetches(g, n);
		return;
	}
	g->last_fetch = g->ip;
	put_access(g, LK_FETCH, u64(g->ip), st->Ist.IMark.len, NULL,
		   g->fetched);
}

static UInt size_of(struct gen *g, const IRExpr *data)
{
	return sizeofIRType(typeOfIRExpr(g->out->tyenv, data));
}

static void put_dirty(struct gen *g, const IRDirty *d)
{
	if (d->mFx == Ifx_Read || d->mFx == Ifx_Modify)
		put_data(g, LK_LOAD, d->mAddr, d->mSize, d->guard);
	if (d->mFx == Ifx_Write || d->mFx == Ifx_Modify)
		put_data(g, LK_STORE, d->mAddr, d->mSize, d->guard);
}

static void put_cas(struct gen *g, const IRCAS *cas)
{
	UInt size = size_of(g, cas->dataLo) * (cas->dataHi ? 2 : 1);

	put_data(g, LK_LOAD, cas->addr, size, NULL);
	put_data(g, LK_STORE, cas->addr, size, NULL);
}

static void put_load_g(struct gen *g, const IRLoadG *lg)
{
	IRType result, source;

	typeOfIRLoadGOp(lg->cvt, &result, &source);
	put_data(g, LK_LOAD, lg->addr, sizeofIRType(source), lg->guard);
}

static void put_llsc(struct gen *g, const IRStmt *st)
{
	if (st->Ist.LLSC.storedata)
		put_data(g, LK_STORE, st->Ist.LLSC.addr,
			 size_of(g, st->Ist.LLSC.storedata), NULL);
	else
		put_data(g, LK_LOAD, st->Ist.LLSC.addr,
			 sizeofIRType(typeOfIRTemp(g->out->tyenv,
						   st->Ist.LLSC.result)),
			 NULL);
}

static void put_statement(struct gen *g, const IRSB *in, Int at)
{
	const IRStmt *st = in->stmts[at];
	const IRExpr *data;
	const IRStoreG *sg;

	switch (st->tag) {
	case Ist_IMark:
		put_instruction(g, in, at);
		break;
	case Ist_WrTmp:
		data = st->Ist.WrTmp.data;
		if (data->tag == Iex_Load)
			put_data(g, LK_LOAD, data->Iex.Load.addr,
				 sizeofIRType(data->Iex.Load.ty), NULL);
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
		put_load_g(g, st->Ist.LoadG.details);
		break;
	case Ist_Dirty:
		put_dirty(g, st->Ist.Dirty.details);
		break;
	case Ist_CAS:
		put_cas(g, st->Ist.CAS.details);
		break;
	case Ist_LLSC:
		put_llsc(g, st);
		break;
	case Ist_Exit:
		end_segment(g);
		break;
	default:
		break;
	}
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
	for (; i < in->stmts_used; i++) {
		put_statement(&g, in, i);
		addStmtToIRSB(g.out, in->stmts[i]);
	}
	end_segment(&g);
	return g.out;
}
