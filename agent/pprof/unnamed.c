// SPDX-License-Identifier: Apache-2.0
#include "pprof/unnamed.h"

#include "base/buf.h"

int unnamed_format(const struct unnamed *u, struct buf *ret)
{
	return buf_printf(ret, "unnamed %u.%u%% %.*s %.*s", u->per_mille / 10, u->per_mille % 10,
			  (int)strview_len(&u->reason), u->reason.p, (int)strview_len(&u->path),
			  u->path.p);
}

bool unnamed_parse(const char *comment, struct unnamed *ret)
{
	struct strview t = strview_of(comment), reason;
	uint64_t whole, tenths;

	if (!strview_prefix(&t, "unnamed ") || !strview_u64(&t, 10, &whole) ||
	    !strview_char(&t, '.') || !strview_u64(&t, 10, &tenths) || !strview_prefix(&t, "% ") ||
	    !strview_word(&t, &reason) || !strview_char(&t, ' ') || strview_empty(&t) ||
	    whole > 100 || tenths > 9 || strview_len(&reason) >= UNNAMED_REASON_MAX)
		return false;
	*ret = (struct unnamed){(uint32_t)(whole * 10 + tenths), reason, t};
	return true;
}
