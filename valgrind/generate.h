/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Adding code to a superblock: for instrument.c and flow.c. */
#ifndef LOOKASIDE_GENERATE_H
#define LOOKASIDE_GENERATE_H

#include "lookaside.h"

/*
 * Which loads a value was computed from. What counts is the one made last: the
 * value can't be there before it.
 */
struct lk_source {
	/* Logged by this superblock: its number, from 1; 0 = none was. */
	UShort access;
	/* Else: what these registers held when it was entered, a bit each. */
	UShort registers;
};

struct gen {
	IRSB *out;
	Addr ip;
	/* Ends of the logs where the superblock is entered; NULL = unknown. */
	IRExpr *accesses_end;
	IRExpr *groups_end;
	/* Logged since, and how much of it the ends in memory take in. */
	UInt accesses;
	UInt groups;
	UInt told_accesses;
	UInt told_groups;
	/* Instructions that the last group has counted already. */
	UInt grouped;
	/* There was a group since the last exit. */
	Bool open;
	/* For flow.c: where temporaries and registers have their values from. */
	struct lk_source *temps;
	struct lk_source registers[LK_REGISTERS];
	/* What lk_flow_registers said where the superblock is entered. */
	IRExpr *entered_with[LK_REGISTERS];
};

static inline IRExpr *u64(ULong n)
{
	return IRExpr_Const(IRConst_U64(n));
}

static inline IRExpr *bind(struct gen *g, IRExpr *value)
{
	IRTemp temp = newIRTemp(g->out->tyenv, Ity_I64);

	addStmtToIRSB(g->out, IRStmt_WrTmp(temp, value));
	return IRExpr_RdTmp(temp);
}

static inline IRExpr *binop(struct gen *g, IROp op, IRExpr *a, IRExpr *b)
{
	return bind(g, IRExpr_Binop(op, a, b));
}

static inline IRExpr *load(struct gen *g, IRExpr *addr)
{
	return bind(g, IRExpr_Load(Iend_LE, Ity_I64, addr));
}

static inline void store(struct gen *g, IRExpr *addr, IRExpr *value)
{
	addStmtToIRSB(g->out, IRStmt_Store(Iend_LE, addr, value));
}

static inline IRExpr *low_half(struct gen *g, IRExpr *value)
{
	IRTemp temp = newIRTemp(g->out->tyenv, Ity_I32);

	addStmtToIRSB(g->out,
		      IRStmt_WrTmp(temp, IRExpr_Unop(Iop_64to32, value)));
	return IRExpr_RdTmp(temp);
}

static inline IRExpr *address_of(const void *p)
{
	return u64((ULong)(Addr)p);
}

static inline IRExpr *later(struct gen *g, IRExpr *pos, ULong bytes)
{
	return bytes ? binop(g, Iop_Add64, pos, u64(bytes)) : pos;
}

/* flow.c */
void lk_flow_begin(struct gen *g, const IRSB *in);
void lk_flow_end(struct gen *g);
IRExpr *lk_flow_origin(struct gen *g, const IRExpr *value);
void lk_flow_statement(struct gen *g, const IRStmt *st, UInt loaded);

#endif
