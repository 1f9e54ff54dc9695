// SPDX-License-Identifier: Apache-2.0
/*
 * An entry of the function table has two numbers: the position of the code (an address in 1.16,
 * else an offset from the text's base) and the position of the record (an offset from the table).
 * The table is sorted by code. The last entry has only the first number, the end of the last
 * function.
 *
 * A function record, in 32-bit words unless said otherwise:
 *
 *   entry (64 bits in 1.16), name, args, deferreturn, pcsp, pcfile, pcln, n_pcdata, cu,
 *   start_line (since 1.20), u8 func_id, u8 flag, u8 pad, u8 n_funcdata
 *
 * Sources: the Go project's src/runtime/runtime2.go (_func), src/internal/abi/symtab.go, of the
 * releases in goversion.c.
 */
#include "gofile/gofunc.h"

#include <string.h>

#include "base/cursor.h"

/* pcdata or funcdata offsets of a function; 1.27 has 5 and 8. Reached: the record is
 * `malformed`. */
#define GOFUNC_DATA_MAX 64u

size_t gofunc_entry_bytes(const struct gomodule *m)
{
	return m->form == GOMODULE_1_16 ? 16 : 8;
}

size_t gofunc_bytes(const struct gomodule *m)
{
	return m->form == GOMODULE_1_18 ? 40 : 44;
}

void gofunc_parse_entry(const struct gomodule *m, const uint8_t *bytes, uint64_t *ret_entry,
			uint64_t *ret_record)
{
	uint64_t wide[2];
	uint32_t narrow[2];

	if (m->form == GOMODULE_1_16) {
		memcpy(wide, bytes, sizeof(wide));
		*ret_entry = wide[0];
		*ret_record = wide[1];
		return;
	}
	memcpy(narrow, bytes, sizeof(narrow));
	*ret_entry = m->text + narrow[0];
	*ret_record = narrow[1];
}

/* The begin of the code according to the record, as a vaddr. */
static bool parse_start(const struct gomodule *m, struct cursor *c, uint64_t *ret)
{
	uint32_t off;

	if (m->form == GOMODULE_1_16)
		return cursor_u64(c, ret);
	if (!cursor_u32(c, &off))
		return false;
	*ret = m->text + off;
	return true;
}

bool gofunc_parse(const struct gomodule *m, const uint8_t *bytes, struct gofunc *f)
{
	struct cursor c;
	uint64_t start;

	cursor_init(&c, bytes, gofunc_bytes(m));
	f->start_line = 0;
	return parse_start(m, &c, &start) && start == f->entry && cursor_u32(&c, &f->name) &&
	       cursor_skip(&c, 8) && /* args, deferreturn */
	       cursor_u32(&c, &f->pc_sp) && cursor_u32(&c, &f->pc_file) &&
	       cursor_u32(&c, &f->pc_line) && cursor_u32(&c, &f->n_pcdata) &&
	       cursor_u32(&c, &f->cu) &&
	       (m->form != GOMODULE_1_20 || cursor_u32(&c, &f->start_line)) &&
	       cursor_u8(&c, &f->func_id) && cursor_u8(&c, &f->flags) && cursor_skip(&c, 1) &&
	       cursor_u8(&c, &f->n_funcdata) && f->n_pcdata <= GOFUNC_DATA_MAX &&
	       f->n_funcdata <= GOFUNC_DATA_MAX;
}
