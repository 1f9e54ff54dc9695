/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWIND_ROWS_H
#define PODPROF_UNWIND_ROWS_H

/*
 * The unwind rows of one image: for each place of its code, how to find the caller. Sources add
 * ranges of code in any order, each with its rows; rows_finish() makes one ascending list of them,
 * in which each row reaches to the next one's address and what nobody described is a gap.
 *
 *	rows_new(text_start, text_end, &rows)
 *	for each range (an FDE, a Go function, a synthetic one):
 *		rows_begin(rows, source, start, end)
 *		rows_add(rows, vaddr, &rule)...         ascending, the first one at start
 *		rows_end(rows), or rows_drop(rows) if the range turns out to be broken
 *	rows_finish(rows)
 *	for (i = 0; i < rows_count(rows); i++)
 *		rows_at(rows, i), rows_rule(rows, id)
 *
 * A range may come from anywhere: this file knows neither ELF nor DWARF. All addresses are ELF
 * virtual addresses. One thread at a time; no state besides.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/unwind.h"

/* Rows of one image: 32 MiB while they are collected and as much again while they are sorted. The
 * largest program seen, of 200 MB, has 1.3 million. Above it, ROWS_FULL. Reached: `rows_full`: the
 * image is walked by frame pointers. */
#define ROWS_MAX (1u << 22)

/* Distinct rules of one image; the largest seen has 1,125. A row with one more is
 * UNWIND_CFA_UNSUPPORTED for UNSUPPORTED_TOO_MANY_RULES. Reached: the row says
 * `unsupported=too_many_rules`. */
#define ROWS_RULES_MAX (1u << 15)

/* Bytes between two ranges that are padding and belong to what is before them; above, a gap.
 * Reached: a row for the gap. */
#define ROWS_PADDING_MAX 15

enum rows_outcome {
	ROWS_OK = 0,
	ROWS_FULL,    /* ROWS_MAX would be passed */
	ROWS_OUTSIDE, /* the range is empty or leaves the text */
	ROWS_OUTCOME_MAX,
};

/*
 * Who says so. Where ranges overlap, the higher source has it; of the same source, the one that was
 * added later.
 */
enum rows_source {
	ROWS_CODE = 0, /* what the code itself shows (codescan.h) */
	ROWS_DEBUG_FRAME,
	ROWS_EH_FRAME,
	ROWS_GO,	/* Go's own tables (gorows.h) */
	ROWS_SYNTHETIC, /* what we know better than the file's tables */
	ROWS_SOURCE_MAX,
};

/* Why a rule is UNWIND_CFA_UNSUPPORTED: in its cfa_off. */
enum rows_unsupported {
	UNSUPPORTED_CFA_EXPRESSION = 1,
	UNSUPPORTED_CFA_REGISTER, /* not a general register */
	UNSUPPORTED_CFA_OFFSET,	  /* does not fit the rule */
	UNSUPPORTED_CFA_NONE,	  /* nothing has said what it is */
	UNSUPPORTED_FP_REGISTER,  /* saved in another register */
	UNSUPPORTED_FP_EXPRESSION,
	UNSUPPORTED_FP_VALUE, /* computed, not saved */
	UNSUPPORTED_FP_OFFSET,
	UNSUPPORTED_RA_REGISTER,
	UNSUPPORTED_RA_EXPRESSION,
	UNSUPPORTED_RA_VALUE,
	UNSUPPORTED_RA_OFFSET,
	UNSUPPORTED_RA_NONE,
	UNSUPPORTED_SIGNAL, /* a signal frame that is not the kernel's */
	UNSUPPORTED_TOO_MANY_RULES,
	UNSUPPORTED_MAX,
};

struct row {
	uint64_t vaddr;
	uint32_t rule; /* for rows_rule(); 0 is the gap */
};

struct rows;

/* For an image whose code lies in [@text_start, @text_end); ranges outside are refused, so are
 * addresses 2^40 and more above @text_start. 0 or -ENOMEM. */
int rows_new(uint64_t text_start, uint64_t text_end, struct rows **ret);
void rows_free(struct rows *rows);

/* Begin the range [@start, @end). 0; ROWS_OUTSIDE, and there is no range. */
int rows_begin(struct rows *rows, enum rows_source source, uint64_t start, uint64_t end);

/**
 * rows_add() - what holds from one address of the range on
 * @vaddr: ascending; another one at the same address replaces the one before it, one behind the
 *         range's end is left out
 * @rule:  copied; unused members must be 0
 *
 * What is before the range's first row is a gap.
 *
 * Return: 0; ROWS_FULL or -ENOMEM, after which the range can only be dropped.
 */
int rows_add(struct rows *rows, uint64_t vaddr, const struct unwind_rule *rule);

/* The same in two steps, for who adds the same rule many times: its number, which stays valid. */
int rows_intern(struct rows *rows, const struct unwind_rule *rule, uint32_t *ret);
int rows_add_interned(struct rows *rows, uint64_t vaddr, uint32_t rule);

/* The range is complete: 0, ROWS_FULL, -ENOMEM (it is dropped). Or it is as if it never was. */
int rows_end(struct rows *rows);
void rows_drop(struct rows *rows);

/* Watch one address, before any range is added; and whether one that was added has it. */
void rows_watch(struct rows *rows, uint64_t vaddr);
bool rows_watched(const struct rows *rows);

/* Sort, resolve overlaps, join what is equal, make gaps explicit. Nothing can be added afterwards.
 * 0; -ENOMEM, and there are no rows. */
int rows_finish(struct rows *rows);

/* After rows_finish(): ascending, no two neighbours with the same rule; the last one is a gap. No
 * rows at all if nothing was added. */
size_t rows_count(const struct rows *rows);
struct row rows_at(const struct rows *rows, size_t i);
/* The row that has @vaddr; (size_t)-1 below the first. */
size_t rows_find(const struct rows *rows, uint64_t vaddr);

/* The distinct rules, numbered from 0 (the gap); some may be in no row. Borrowed. */
size_t rows_n_rules(const struct rows *rows);
const struct unwind_rule *rows_rule(const struct rows *rows, uint32_t id);

/* Bytes that it holds at the moment. */
size_t rows_bytes(const struct rows *rows);

const char *rows_outcome_name(int outcome);
/* "cfa_expression"; "unknown" for what is none. */
const char *rows_unsupported_name(int32_t why);

#endif
