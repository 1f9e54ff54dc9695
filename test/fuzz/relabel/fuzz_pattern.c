// SPDX-License-Identifier: Apache-2.0
/* A pattern, a template and a text, a line each; the text has the rest. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "relabel/pattern.h"
#include "relabel/template.h"

DEFINE_CLEANUP(struct pattern *, pattern_freep, pattern_free);
DEFINE_CLEANUP(struct template *, template_freep, template_free);

static void match(const struct pattern *p, const struct template *t, const char *text, size_t n)
{
	_cleanup_(buf_deinit) struct buf to = BUF_INIT(1000);
	struct pattern_match m;
	struct strview group;
	int r = pattern_match(p, text, n, &m);

	if (r)
		return;
	/* the whole text or nothing */
	if (!pattern_match_group(&m, 0, &group) || group.p != text || group.end != text + n)
		abort();
	for (size_t i = 1; i <= pattern_n_groups(p); i++)
		if (pattern_match_group(&m, i, &group) &&
		    (group.p < text || group.end > text + n || group.p > group.end))
			abort();
	if (t && template_expand(t, &m, &to) < 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct strview rest = strview_of_bytes((const char *)data, size), line;
	_cleanup_(freep) char *pattern_text = NULL;
	_cleanup_(freep) char *template_text = NULL;
	_cleanup_(pattern_freep) struct pattern *p = NULL;
	_cleanup_(template_freep) struct template *t = NULL;
	struct pattern_error error = {""};

	if (!strview_until(&rest, '\n', &line))
		return 0;
	pattern_text = strview_dup(line);
	if (!pattern_text || pattern_new(pattern_text, &p, &error)) {
		if (pattern_text && !error.text[0])
			abort();
		return 0;
	}
	if (!strview_until(&rest, '\n', &line))
		line = strview_of("");
	template_text = strview_dup(line);
	if (template_text)
		(void)template_new(template_text, p, &t, &error);
	match(p, t, rest.p, strview_len(&rest));
	return 0;
}
