// SPDX-License-Identifier: Apache-2.0
#include "base/quantity.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/strview.h"

struct unit {
	const char *name;
	uint64_t factor;
};

/* A decimal number followed by an item of @units. */
static bool with_unit(const char *s, const struct unit *units, size_t n_units, uint64_t *ret)
{
	struct strview t = strview_of(s);
	uint64_t value;

	if (!strview_u64(&t, 10, &value))
		return false;
	for (size_t i = 0; i < n_units; i++) {
		if (!strview_is(&t, units[i].name))
			continue;
		return !__builtin_mul_overflow(value, units[i].factor, ret);
	}
	return false;
}

bool quantity_duration(const char *s, uint64_t *ret_ns)
{
	static const struct unit units[] = {
		{"ms", NSEC_PER_MSEC},
		{"s", NSEC_PER_SEC},
		{"m", 60 * NSEC_PER_SEC},
		{"h", 3600 * NSEC_PER_SEC},
	};
	uint64_t ns;

	if (strcmp(s, "0") == 0) {
		*ret_ns = 0;
		return true;
	}
	if (!with_unit(s, units, array_size(units), &ns))
		return false;
	*ret_ns = ns;
	return true;
}

bool quantity_bytes(const char *s, uint64_t *ret)
{
	static const struct unit units[] = {
		{"", 1},
		{"Ki", 1ull << 10},
		{"KiB", 1ull << 10},
		{"Mi", 1ull << 20},
		{"MiB", 1ull << 20},
		{"Gi", 1ull << 30},
		{"GiB", 1ull << 30},
	};
	uint64_t bytes;

	if (!with_unit(s, units, array_size(units), &bytes))
		return false;
	*ret = bytes;
	return true;
}

bool quantity_share(const char *s, double *ret)
{
	char *end;
	double share;

	if (*s < '0' || *s > '9' || strpbrk(s, "xX")) /* no sign, no blanks, no hex */
		return false;
	share = strtod(s, &end);
	if (*end || !(share >= 0 && share <= 1))
		return false;
	*ret = share;
	return true;
}
