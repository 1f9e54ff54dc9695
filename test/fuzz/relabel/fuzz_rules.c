// SPDX-License-Identifier: Apache-2.0
/*
 * Rules as JSON in the first line, labels as NAME=VALUE in the others. Without a line that begins
 * with '[' the rules are reasonable, and all bytes are the texts of a hostile pod.
 */
#include "fuzz/fuzz.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/labels.h"
#include "base/strview.h"
#include "base/utf8.h"
#include "relabel/relabel.h"

DEFINE_CLEANUP(json_t *, json_freep, json_decref);
DEFINE_CLEANUP(struct relabel *, relabel_freep, relabel_free);

static const char usual[] =
	"[{\"action\":\"drop\",\"source_labels\":[\"a\"],\"regex\":\"kube-.*|.*-(test|dev)\"},"
	"{\"source_labels\":[\"a\",\"b\"],\"regex\":\"(.*?)[-/](.*);(?i:x)?(.+)\","
	"\"target_label\":\"__c_$1\",\"replacement\":\"${3}_$2\"},"
	"{\"action\":\"labelmap\",\"regex\":\"__(.+)\"},"
	"{\"action\":\"labelmap\",\"regex\":\"(.)(.*)\",\"replacement\":\"$2$1\"},"
	"{\"action\":\"lowercase\",\"source_labels\":[\"a\",\"b\"],\"target_label\":\"d\"},"
	"{\"action\":\"uppercase\",\"source_labels\":[\"a\",\"b\"],\"target_label\":\"e\"},"
	"{\"action\":\"hashmod\",\"source_labels\":[\"a\"],\"target_label\":\"f\",\"modulus\":7},"
	"{\"action\":\"dropequal\",\"source_labels\":[\"a\"],\"target_label\":\"b\"},"
	"{\"action\":\"labelkeep\",\"regex\":\"[a-z]|\\\\w+_\\\\pL\"}]";

static int read_rules(struct strview *rest, struct relabel **ret)
{
	struct relabel_error error = {""};
	_cleanup_(json_freep) json_t *json = NULL;
	struct strview line;
	int r;

	if (strview_starts(rest, "[") && strview_until(rest, '\n', &line))
		json = json_loadb(line.p, strview_len(&line), 0, NULL);
	else
		json = json_loads(usual, 0, NULL);
	if (!json)
		return RELABEL_BAD;
	r = relabel_new(json, ret, &error);
	if (r > 0 && !error.text[0])
		abort();
	return r;
}

static void read_labels(struct strview rest, struct labels *l)
{
	struct strview line, name;

	while (strview_until(&rest, '\n', &line) && strview_until(&line, '=', &name)) {
		_cleanup_(freep) char *name_text = strview_dup(name);
		_cleanup_(freep) char *value = strview_dup(line);

		if (!name_text || !value || labels_set(l, name_text, value) < 0)
			return;
	}
}

static void check_labels(const struct labels *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (!labels_valid_name(l->items[i].name) || !l->items[i].value[0] ||
		    strlen(l->items[i].value) > LABELS_VALUE_MAX ||
		    !utf8_is_valid(l->items[i].value, strlen(l->items[i].value)))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct strview rest = strview_of_bytes((const char *)data, size);
	_cleanup_(labels_deinit) struct labels l = {.max = LABELS_META_MAX};
	_cleanup_(labels_deinit) struct labels origins = {.max = LABELS_META_MAX};
	_cleanup_(relabel_freep) struct relabel *relabel = NULL;
	struct relabel_result result;
	int r;

	if (read_rules(&rest, &relabel))
		return 0;
	read_labels(rest, &l);
	r = relabel_apply(relabel, &l, &origins, &result);
	if (r < 0 || (r && result.rule >= relabel_n_rules(relabel)))
		abort();
	check_labels(&l);
	for (size_t i = 0; i < origins.n; i++)
		if (!labels_get(&l, origins.items[i].name))
			abort();
	return 0;
}
