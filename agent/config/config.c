// SPDX-License-Identifier: Apache-2.0
/*
 * The sources are applied in ascending precedence, each over the last. A flag or the environment
 * may name the file, so a first pass searches both for --config alone. getopt parses the flags.
 */
#include "config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/labels.h"
#include "base/nsec.h"
#include "base/root.h"
#include "config/option.h"
#include "relabel/pattern.h"
#include "relabel/relabel.h"

/* ---- the file */

/* The configuration file: one JSON object with the flags' names as keys. A number, a string or a
 * boolean is parsed like the flag's value; a repeatable flag takes an array of strings.
 * "relabel_configs" is an array of objects, as in Prometheus' configuration. */

/* Bytes of a settings file, usually a few hundred; a larger file is something else. Reached: an
 * error says so. */
#define FILE_BYTES_MAX (1u << 20)

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
		config_error_set(error, "cannot read %s: %s", path, root_why(r));
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

/* 0, CONFIG_BAD with a sentence, -ENOMEM. */
static int file_apply(const char *path, struct config *c, struct config_error *ret_error)
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

/* ---- all sources */

DEFINE_CLEANUP(struct pattern *, pattern_freep, pattern_free);

#define CONFIG_STORE_DIR "/var/lib/podprof"

/* getopt_long() returns this plus i for options[i]; --help has a value of its own. */
#define FLAG_BASE 256
#define FLAG_HELP 255

bool config_in_cluster(void)
{
	return getenv("KUBERNETES_SERVICE_HOST");
}

static int apply_defaults(struct config *c, struct config_error *error)
{
	int r = 0;

	c->host_processes = !config_in_cluster();
	for (size_t i = 0; i < n_options && !r; i++)
		if (options[i].default_text)
			r = option_set(&options[i], c, options[i].default_text, options[i].name,
				       error);
	return r;
}

/* One variable; blanks separate a list's items, since a URL cannot contain blanks. */
static int apply_env_value(const struct option_desc *option, struct config *c, const char *name,
			   const char *value, struct config_error *error)
{
	_cleanup_(freep) char *copy = NULL;
	char *save = NULL;
	int r = 0;

	if (option->kind != OPTION_LIST)
		return option_set(option, c, value, name, error);
	copy = strdup(value);
	if (!copy)
		return -ENOMEM;
	option_reset(option, c);
	for (char *item = strtok_r(copy, " \t\n", &save); item && !r;
	     item = strtok_r(NULL, " \t\n", &save))
		r = option_set(option, c, item, name, error);
	return r;
}

static int apply_env(struct config *c, struct config_error *error)
{
	char name[64];
	int r = 0;

	for (size_t i = 0; i < n_options && !r; i++) {
		const char *value;

		/* "cpu-rate" into "PODPROF_CPU_RATE". */
		snprintf(name, sizeof(name), "PODPROF_%s", options[i].name);
		for (char *p = name; *p; p++)
			*p = (char)(*p == '-' ? '_' : *p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p);
		value = getenv(name);
		if (value)
			r = apply_env_value(&options[i], c, name, value, error);
	}
	return r;
}

static void long_options(struct option *ret)
{
	for (size_t i = 0; i < n_options; i++)
		ret[i] = (struct option){
			.name = options[i].name,
			.has_arg = options[i].kind == OPTION_BOOL ? optional_argument
								  : required_argument,
			.val = FLAG_BASE + (int)i,
		};
	ret[n_options] = (struct option){.name = "help", .val = FLAG_HELP};
	ret[n_options + 1] = (struct option){0};
}

static int apply_flag(const struct option_desc *option, struct config *c, const char *value,
		      bool *seen, struct config_error *error)
{
	char source[64];

	snprintf(source, sizeof(source), "--%s", option->name);
	if (!*seen)
		option_reset(option, c);
	*seen = true;
	return option_set(option, c, value ? value : "true", source, error);
}

/* All flags; with @only, just that flag, without errors about other values. */
static int apply_flags(int argc, char **argv, struct config *c, const struct option_desc *only,
		       struct config_error *error)
{
	_cleanup_(freep) struct option *longs = calloc(n_options + 2, sizeof(*longs));
	_cleanup_(freep) bool *seen = calloc(n_options, sizeof(*seen));
	int flag, r = 0;

	if (!longs || !seen)
		return -ENOMEM;
	long_options(longs);
	optind = 0; /* start afresh: this runs more than once */
	opterr = 0;
	while (!r && (flag = getopt_long(argc, argv, ":", longs, NULL)) != -1) {
		if (flag < FLAG_BASE) {
			if (flag == FLAG_HELP)
				return CONFIG_HELP;
			config_error_set(error, "%s '%s'; 'podprof agent --help' lists the flags",
					 flag == ':' ? "missing value after" : "unknown flag",
					 argv[optind - 1]);
			return CONFIG_BAD;
		}
		if (only && &options[flag - FLAG_BASE] != only)
			continue;
		r = apply_flag(&options[flag - FLAG_BASE], c, optarg, &seen[flag - FLAG_BASE],
			       error);
	}
	if (!r && optind < argc) {
		config_error_set(error,
				 "unexpected argument '%s'; 'podprof agent --help' lists the flags",
				 argv[optind]);
		return CONFIG_BAD;
	}
	return r;
}

static int find_file(int argc, char **argv, struct config *c, struct config_error *error)
{
	const struct option_desc *option = option_find("config");
	const char *value = getenv("PODPROF_CONFIG");
	int r = 0;

	if (value)
		r = option_set(option, c, value, "PODPROF_CONFIG", error);
	return r ? r : apply_flags(argc, argv, c, option, error);
}

/* Settings whose default depends on other settings or on the machine. */
static int apply_late_defaults(struct config *c)
{
	char host[256] = "unknown";
	const char *name = getenv("NODE_NAME");

	if (!c->node_name) {
		if (!name || !*name) {
			(void)gethostname(host, sizeof(host) - 1);
			name = host;
		}
		c->node_name = strdup(name);
		if (!c->node_name)
			return -ENOMEM;
	}
	if (!c->store_dir && !c->destinations.n) {
		c->store_dir = strdup(CONFIG_STORE_DIR);
		if (!c->store_dir)
			return -ENOMEM;
	}
	return 0;
}

struct range {
	const char *name;
	uint64_t value;
	uint64_t low;
	uint64_t high;
	const char *form;
};

static int validate(const struct config *c, struct config_error *error)
{
	const struct range ranges[] = {
		{"window", c->window_ns, NSEC_PER_SEC, 3600 * NSEC_PER_SEC, "1s to 1h"},
		/* the kernel's default ceiling (kernel.perf_event_max_sample_rate) is 100,000, but
		 * a sample costs microseconds: above 10 kHz the agent would mostly measure itself
		 */
		{"cpu-rate", c->cpu_rate, 0, 10000, "0 to 10000"},
		{"store-bytes", c->store_bytes, 1 << 20, UINT64_MAX, "1MiB or more"},
		{"store-age", c->store_age_ns, c->window_ns, UINT64_MAX, "a window or more"},
		{"spool-bytes", c->spool_bytes, 4 << 20, UINT64_MAX, "4MiB or more"},
		{"memory-budget", c->memory_budget, 16 << 20, UINT64_MAX, "16MiB or more"},
	};

	for (size_t i = 0; i < array_size(ranges); i++)
		if (ranges[i].value < ranges[i].low || ranges[i].value > ranges[i].high) {
			config_error_set(error, "--%s is out of range: give %s", ranges[i].name,
					 ranges[i].form);
			return CONFIG_BAD;
		}
	if (c->off_cpu > 0 && !c->cpu_rate) {
		config_error_set(error, "--off-cpu needs CPU profiling: set --cpu-rate above 0");
		return CONFIG_BAD;
	}
	if (!c->listen || !c->proc_root) {
		config_error_set(error, "--%s must not be empty",
				 c->listen ? "proc-root" : "listen");
		return CONFIG_BAD;
	}
	return 0;
}

/* NAME=VALUE */
static int validate_label(const char *text, struct config_error *error)
{
	const char *equals = strchr(text, '=');
	char name[64];
	size_t n = equals ? (size_t)(equals - text) : 0;
	bool fits = n > 0 && n < sizeof(name);

	if (fits)
		snprintf(name, sizeof(name), "%.*s", (int)n, text);
	if (fits && equals[1] && labels_valid_name(name) && strncmp(name, "__", 2) != 0)
		return 0;
	config_error_set(error,
			 "--label: '%s' is not valid: give NAME=VALUE, such as cluster=prod; a "
			 "name consists of letters, digits and '_' and does not begin with a digit "
			 "or '__'",
			 text);
	return CONFIG_BAD;
}

static bool is_web_address(const char *url)
{
	return strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0;
}

static int validate_doc_url(const char *url, struct config_error *error)
{
	if (!url || (is_web_address(url) && strlen(url) <= CONFIG_DOC_URL_MAX))
		return 0;
	config_error_set(error,
			 "--doc-url: '%.100s' is not valid: give http:// or https:// and at most "
			 "%u bytes",
			 url, CONFIG_DOC_URL_MAX);
	return CONFIG_BAD;
}

static int validate_server(const char *name, const char *url, struct config_error *error)
{
	if (is_web_address(url))
		return 0;
	config_error_set(error,
			 "--%s: '%.100s' is not valid: give http://HOST[:PORT] or "
			 "https://HOST[:PORT]",
			 name, url);
	return CONFIG_BAD;
}

static int validate_pattern(const char *name, const char *text, struct config_error *error)
{
	_cleanup_(pattern_freep) struct pattern *pattern = NULL;
	struct pattern_error why = {""};
	int r = pattern_new(text, &pattern, &why);

	if (r <= 0)
		return r;
	config_error_set(error, "--%s: '%.100s' is not valid: %s", name, text, why.text);
	return CONFIG_BAD;
}

static int validate_texts(const struct config *c, struct config_error *error)
{
	int r = validate_doc_url(c->doc_url, error);

	for (size_t i = 0; i < c->labels.n && !r; i++)
		r = validate_label(c->labels.items[i], error);
	for (size_t i = 0; i < c->select.n && !r; i++)
		r = validate_pattern("select", c->select.items[i], error);
	for (size_t i = 0; i < c->ignore.n && !r; i++)
		r = validate_pattern("ignore", c->ignore.items[i], error);
	for (size_t i = 0; i < c->debuginfod.n && !r; i++)
		r = validate_server("debuginfod", c->debuginfod.items[i], error);
	if (c->kubelet_url && !r)
		r = validate_server("kubelet-url", c->kubelet_url, error);
	return r;
}

int config_load(int argc, char **argv, struct config *ret, struct config_error *ret_error)
{
	int r = apply_defaults(ret, ret_error);

	ret->argc = argc;
	ret->argv = argv;
	if (!r)
		r = find_file(argc, argv, ret, ret_error);
	if (!r && ret->config_file)
		r = file_apply(ret->config_file, ret, ret_error);
	if (!r)
		r = apply_env(ret, ret_error);
	if (!r)
		r = apply_flags(argc, argv, ret, NULL, ret_error);
	if (!r)
		r = apply_late_defaults(ret);
	if (!r)
		r = validate(ret, ret_error);
	if (!r)
		r = validate_texts(ret, ret_error);
	return r;
}

void config_deinit(struct config *c)
{
	for (size_t i = 0; i < n_options; i++) {
		void *at = (char *)c + options[i].offset;

		option_reset(&options[i], c);
		if (options[i].kind == OPTION_STRING)
			freep(at);
	}
	relabel_free(c->relabel);
	*c = (struct config){0};
}

static bool strings_equal(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool lists_equal(const struct config_list *a, const struct config_list *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->items[i], b->items[i]) != 0)
			return false;
	return true;
}

static bool settings_equal(const struct option_desc *option, const struct config *ca,
			   const struct config *cb)
{
	const void *a = (const char *)ca + option->offset, *b = (const char *)cb + option->offset;

	switch (option->kind) {
	case OPTION_STRING:
		return strings_equal(*(char *const *)a, *(char *const *)b);
	case OPTION_LIST:
		return lists_equal(a, b);
	case OPTION_BOOL:
		return *(const bool *)a == *(const bool *)b;
	case OPTION_CHOICE:
		return *(const unsigned int *)a == *(const unsigned int *)b;
	case OPTION_SHARE:
		return *(const double *)a == *(const double *)b;
	case OPTION_UINT:
	case OPTION_DURATION:
	case OPTION_BYTES:
		break;
	}
	return *(const uint64_t *)a == *(const uint64_t *)b;
}

void config_diff(const struct config *a, const struct config *b, char *ret, size_t n)
{
	size_t used = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < n_options && used < n; i++)
		if (!options[i].live && !settings_equal(&options[i], a, b))
			used += (size_t)snprintf(ret + used, n - used, "%s%s", used ? " " : "",
						 options[i].name);
}

/* Columns of the help: of a line, and in front of the texts. */
#define HELP_COLUMNS 90
#define HELP_INDENT  28

/* Prints the words of @text, from column *@column on, in lines of HELP_COLUMNS. */
static void print_words(FILE *to, const char *text, int *column)
{
	while (*text) {
		const int n = (int)strcspn(text, " ");

		if (*column + 1 + n > HELP_COLUMNS)
			*column = fprintf(to, "\n%*s", HELP_INDENT, "") - 1;
		*column += fprintf(to, "%s%.*s", *column > HELP_INDENT ? " " : "", n, text);
		text += n + strspn(text + n, " ");
	}
}

static void print_option(FILE *to, const struct option_desc *option)
{
	char flag[64], value[64];
	int column;

	snprintf(flag, sizeof(flag), "--%s%s%s", option->name, option->value_name ? " " : "",
		 option->value_name ? option->value_name : "");
	column = fprintf(to, "  %-*s", HELP_INDENT - 2, flag);
	print_words(to, option->help, &column);
	if (option->default_text) {
		snprintf(value, sizeof(value), "(default: %s)", option->default_text);
		print_words(to, value, &column);
	}
	fputc('\n', to);
}

void config_print_help(FILE *to)
{
	for (size_t i = 0; i < n_options; i++) {
		if (options[i].group)
			fprintf(to, "\n%s:\n", options[i].group);
		print_option(to, &options[i]);
	}
}
