// SPDX-License-Identifier: Apache-2.0
#include "config/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/root.h"
#include "config/option.h"
#include "relabel/relabel.h"

static int read_file(const char *path, struct buf *text, struct config_error *error)
{
	_cleanup_(close_fdp) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int r;

	if (fd < 0) {
		config_error_set(error, "cannot open %s: %s", path, strerror(errno));
		return CONFIG_BAD;
	}
	r = root_read_fd(fd, text);
	if (r == -ENOMEM)
		return r;
	if (r) {
		config_error_set(error, "cannot read %s: %s", path,
				 r > 0 ? root_outcome_name(r) : strerror(-r));
		return CONFIG_BAD;
	}
	return 0;
}

/* A scalar as the text of the flag. False for another type. */
static bool scalar_text(const json_t *value, char *ret, size_t n)
{
	if (json_is_string(value))
		return snprintf(ret, n, "%s", json_string_value(value)) < (int)n;
	if (json_is_real(value))
		return snprintf(ret, n, "%.17g", json_real_value(value)) > 0;
	if (json_is_integer(value))
		return snprintf(ret, n, "%" JSON_INTEGER_FORMAT, json_integer_value(value)) > 0;
	if (json_is_boolean(value))
		return snprintf(ret, n, "%s", json_is_true(value) ? "true" : "false") > 0;
	return false;
}

static int apply_value(const struct option_desc *option, struct config *c, const json_t *value,
		       const char *source, struct config_error *error)
{
	char text[4096];

	if (!scalar_text(value, text, sizeof(text))) {
		config_error_set(error, "%s: give a string, number or boolean", source);
		return CONFIG_BAD;
	}
	return option_set(option, c, text, source, error);
}

/* The only setting without a flag, because of its size. */
static int apply_relabel(const char *path, const json_t *value, struct config *c,
			 struct config_error *error)
{
	struct relabel_error why = {""};
	struct relabel *relabel;
	int r = relabel_new(value, &relabel, &why);

	if (r > 0) {
		config_error_set(error, "%.100s: %s", path, why.text);
		return CONFIG_BAD;
	}
	if (r)
		return r;
	relabel_free(c->relabel);
	c->relabel = relabel;
	return 0;
}

static int apply_key(const char *path, const char *key, json_t *value, struct config *c,
		     struct config_error *error)
{
	const struct option_desc *option = option_find(key);
	char source[256];
	int r = 0;

	if (strcmp(key, "relabel_configs") == 0)
		return apply_relabel(path, value, c, error);
	snprintf(source, sizeof(source), "\"%.60s\" in %.160s", key, path);
	if (!option || strcmp(key, "config") == 0) {
		config_error_set(error,
				 "%s is not a setting; 'podprof agent --help' lists the settings",
				 source);
		return CONFIG_BAD;
	}
	if (option->kind != OPTION_LIST || !json_is_array(value))
		return apply_value(option, c, value, source, error);
	option_reset(option, c);
	for (size_t i = 0; i < json_array_size(value) && !r; i++)
		r = apply_value(option, c, json_array_get(value, i), source, error);
	return r;
}

int file_apply(const char *path, struct config *c, struct config_error *ret_error)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(FILE_BYTES_MAX);
	_cleanup_(json_decrefp) json_t *object = NULL;
	json_error_t where;
	const char *key;
	json_t *value;
	int r = read_file(path, &text, ret_error);

	if (r)
		return r;
	object = json_loadb(text.data ? text.data : "", text.len, JSON_REJECT_DUPLICATES, &where);
	if (!object) {
		config_error_set(ret_error, "%s line %d: %s", path, where.line, where.text);
		return CONFIG_BAD;
	}
	if (!json_is_object(object)) {
		config_error_set(ret_error, "%s: not a JSON object, such as {\"cpu-rate\": 97}",
				 path);
		return CONFIG_BAD;
	}
	json_object_foreach(object, key, value) {
		r = apply_key(path, key, value, c, ret_error);
		if (r)
			return r;
	}
	return 0;
}
