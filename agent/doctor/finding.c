// SPDX-License-Identifier: Apache-2.0
#include "doctor/finding.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/utf8.h"

const char *finding_outcome_name(enum finding_outcome outcome)
{
	static const char *const names[FINDING_OUTCOME_MAX] = {
		[FINDING_OK] = "ok",
		[FINDING_DEGRADED] = "degraded",
		[FINDING_MISSING] = "missing",
	};

	return names[outcome];
}

struct finding *findings_add(struct findings *f, const char *check, enum finding_outcome outcome,
			     const char *found, ...)
{
	struct finding *finding = &f->items[f->n < FINDINGS_MAX ? f->n++ : FINDINGS_MAX - 1];
	va_list args;

	*finding = (struct finding){.check = check, .outcome = outcome};
	va_start(args, found);
	vsnprintf(finding->found, sizeof(finding->found), found, args);
	va_end(args);
	utf8_make_printable(finding->found);
	return finding;
}

void finding_say(struct finding *finding, const char *means, const char *remedy)
{
	snprintf(finding->means, sizeof(finding->means), "%s", means);
	snprintf(finding->remedy, sizeof(finding->remedy), "%s", remedy);
	utf8_make_printable(finding->means);
	utf8_make_printable(finding->remedy);
}

void finding_text(char *ret, size_t n, struct strview text)
{
	snprintf(ret, n, "%.*s", (int)strview_len(&text), text.p);
	utf8_make_printable(ret);
}

size_t findings_count(const struct findings *f, enum finding_outcome outcome)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++)
		n += f->items[i].outcome == outcome;
	return n;
}
