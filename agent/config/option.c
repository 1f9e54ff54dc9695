// SPDX-License-Identifier: Apache-2.0
#include "config/option.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/quantity.h"
#include "base/strview.h"

static const char *const unwind_choices[] = {"auto", "fp", "dwarf", NULL};
static const char *const go_heap_choices[] = {"disabled", "enabled", "force-annotated", "force",
					      NULL};
static const char *const metadata_choices[] = {"auto",	  "kubelet", "apiserver",
					       "runtime", "none",    NULL};
static const char *const verify_choices[] = {"full", "chain", "none", NULL};
static const char *const log_level_choices[] = {"debug", "info", "warn", "error", NULL};
static const char *const log_format_choices[] = {"logfmt", "json", NULL};

_Static_assert(array_size(unwind_choices) == CONFIG_UNWIND_MAX + 1, "one word for each way");
_Static_assert(array_size(go_heap_choices) == CONFIG_GO_HEAP_MAX + 1, "one word for each mode");
_Static_assert(array_size(metadata_choices) == CONFIG_METADATA_MAX + 1, "one word for each");
_Static_assert(array_size(verify_choices) == CONFIG_VERIFY_MAX + 1, "one word for each");
_Static_assert(array_size(log_level_choices) == LOG_LEVEL_MAX + 1, "one word for each level");
_Static_assert(array_size(log_format_choices) == LOG_FORMAT_MAX + 1, "one word for each format");

#define AT(member) offsetof(struct config, member)

const struct option_desc options[] = {
	{.group = "Profiling",
	 .name = "window",
	 .kind = OPTION_DURATION,
	 .offset = AT(window_ns),
	 .value_name = "DURATION",
	 .default_text = "60s",
	 .help = "time span of one profile"},
	{.name = "cpu-rate",
	 .kind = OPTION_UINT,
	 .offset = AT(cpu_rate),
	 .value_name = "HZ",
	 .default_text = "97",
	 .help = "samples per second and CPU; 0 turns CPU profiling off. Use a prime: "
		 "other rates may run in step with periodic programs"},
	{.name = "off-cpu",
	 .kind = OPTION_SHARE,
	 .offset = AT(off_cpu),
	 .value_name = "SHARE",
	 .default_text = "0",
	 .help = "share of task switches to sample, to show where threads wait: 0.01 "
		 "suits a busy node; 0 turns off-CPU profiling off"},
	{.name = "unwind",
	 .kind = OPTION_CHOICE,
	 .offset = AT(unwind),
	 .value_name = "WAY",
	 .choices = unwind_choices,
	 .default_text = "auto",
	 .help = "unwinding of user stacks: auto (unwind tables, and frame pointers for "
		 "code without a table), fp (frame pointers only), dwarf (tables only)"},
	{.name = "kernel-stacks",
	 .kind = OPTION_BOOL,
	 .offset = AT(kernel_stacks),
	 .default_text = "true",
	 .help = "record the kernel's frames"},
	{.name = "thread-names",
	 .kind = OPTION_BOOL,
	 .offset = AT(thread_names),
	 .default_text = "false",
	 .help = "label samples with the name of their thread (label thread)"},
	{.name = "task-names",
	 .kind = OPTION_BOOL,
	 .offset = AT(task_names),
	 .default_text = "false",
	 .help = "label samples of Python with the name of their asyncio task (label task)"},
	{.name = "doc-url",
	 .kind = OPTION_STRING,
	 .offset = AT(doc_url),
	 .value_name = "URL",
	 .help = "address of a page about these profiles, for instance your runbook: pprof "
		 "links to it"},
	{.name = "dwarf",
	 .kind = OPTION_BOOL,
	 .offset = AT(dwarf),
	 .default_text = "true",
	 .help = "read inlined functions, files and lines from debug information, in a "
		 "process of its own; symbol tables name functions in any case"},
	{.name = "debuginfod",
	 .kind = OPTION_LIST,
	 .offset = AT(debuginfod),
	 .value_name = "URL",
	 .help = "ask this debuginfod server for the debug files of programs without "
		 "names; repeatable. The server learns the build ids of all programs"},
	{.name = "debuginfod-dir",
	 .kind = OPTION_STRING,
	 .offset = AT(debuginfod_dir),
	 .value_name = "DIR",
	 .default_text = "/var/cache/podprof/debuginfod",
	 .help = "keep the debug files of servers here"},
	{.name = "debuginfod-bytes",
	 .kind = OPTION_BYTES,
	 .offset = AT(debuginfod_bytes),
	 .value_name = "BYTES",
	 .default_text = "2GiB",
	 .help = "limit of these files; podprof removes those not used for longest"},
	{.name = "go-heap-profiler",
	 .kind = OPTION_CHOICE,
	 .offset = AT(go_heap),
	 .value_name = "MODE",
	 .choices = go_heap_choices,
	 .default_text = "enabled",
	 .help = "disabled; enabled (read programs with sampling on); force (if sampling "
		 "is off, turn it on by writing MemProfileRate once); force-annotated "
		 "(the same, only in pods annotated podprof.io/go-heap: force)"},
	{.name = "go-contention",
	 .kind = OPTION_BOOL,
	 .offset = AT(go_contention),
	 .default_text = "true",
	 .help = "read mutex and block profiles of Go programs with these profilers on"},
	{.name = "host-processes",
	 .kind = OPTION_BOOL,
	 .offset = AT(host_processes),
	 .help = "also profile processes outside of all containers (default: true; in a "
		 "Kubernetes pod false)"},
	{.name = "select",
	 .kind = OPTION_LIST,
	 .offset = AT(select),
	 .value_name = "PATTERN",
	 .live = true,
	 .help = "profile only matching names: NAMESPACE/POD/CONTAINER; outside of pods "
		 "the name of the container, unit or process; repeatable"},
	{.name = "ignore",
	 .kind = OPTION_LIST,
	 .offset = AT(ignore),
	 .value_name = "PATTERN",
	 .live = true,
	 .help = "exclude matching names; repeatable"},
	{.group = "Host",
	 .name = "cgroupfs-root",
	 .kind = OPTION_STRING,
	 .offset = AT(cgroupfs_root),
	 .value_name = "DIR",
	 .help = "the host's cgroup file system (default: from the mount table)"},
	{.name = "proc-root",
	 .kind = OPTION_STRING,
	 .offset = AT(proc_root),
	 .value_name = "DIR",
	 .default_text = "/proc",
	 .help = "the host's /proc"},
	{.name = "node-name",
	 .kind = OPTION_STRING,
	 .offset = AT(node_name),
	 .value_name = "NAME",
	 .help = "value of the label node (default: $NODE_NAME, or the host's name)"},
	{.group = "Names and labels",
	 .name = "label",
	 .kind = OPTION_LIST,
	 .offset = AT(labels),
	 .value_name = "NAME=VALUE",
	 .list_max = CONFIG_LABELS_MAX,
	 .live = true,
	 .help = "a label of all profiles, such as cluster=prod; repeatable"},
	{.name = "metadata",
	 .kind = OPTION_CHOICE,
	 .offset = AT(metadata),
	 .value_name = "SOURCE",
	 .choices = metadata_choices,
	 .default_text = "auto",
	 .help = "source of names: kubelet, apiserver, runtime (its files on the node), none, "
		 "or auto (the runtime; in a Kubernetes pod also the kubelet, with the API "
		 "server as the fallback)"},
	{.name = "kubelet-url",
	 .kind = OPTION_STRING,
	 .offset = AT(kubelet_url),
	 .value_name = "URL",
	 .help = "address of the kubelet (default: https://$HOST_IP:10250)"},
	{.name = "kubelet-verify",
	 .kind = OPTION_CHOICE,
	 .offset = AT(kubelet_verify),
	 .value_name = "HOW",
	 .choices = verify_choices,
	 .default_text = "full",
	 .help = "check of the kubelet's certificate with the cluster's CA: full, chain (the "
		 "signature without the name) or none"},
	{.group = "Destinations and store",
	 .name = "destination",
	 .kind = OPTION_LIST,
	 .offset = AT(destinations),
	 .list_max = CONFIG_DESTINATIONS_MAX,
	 .value_name = "KIND=URL",
	 .help = "send profiles to this server; repeatable. See 'Destinations' below"},
	{.name = "store-dir",
	 .kind = OPTION_STRING,
	 .offset = AT(store_dir),
	 .value_name = "DIR",
	 .help = "keep profiles here for the page (default: /var/lib/podprof without "
		 "a destination, else none)"},
	{.name = "store-bytes",
	 .kind = OPTION_BYTES,
	 .offset = AT(store_bytes),
	 .value_name = "BYTES",
	 .default_text = "256MiB",
	 .help = "limit of the store; podprof removes the oldest profiles first"},
	{.name = "store-age",
	 .kind = OPTION_DURATION,
	 .offset = AT(store_age_ns),
	 .value_name = "DURATION",
	 .default_text = "24h",
	 .help = "remove older profiles from the store"},
	{.name = "spool-dir",
	 .kind = OPTION_STRING,
	 .offset = AT(spool_dir),
	 .value_name = "DIR",
	 .help = "keep profiles for destinations here until they are sent, also across the "
		 "agent's end (default: none)"},
	{.name = "spool-bytes",
	 .kind = OPTION_BYTES,
	 .offset = AT(spool_bytes),
	 .value_name = "BYTES",
	 .default_text = "256MiB",
	 .help = "limit of the spool; podprof drops the oldest profiles first"},
	{.group = "Agent",
	 .name = "listen",
	 .kind = OPTION_STRING,
	 .offset = AT(listen),
	 .value_name = "ADDR:PORT",
	 .default_text = "127.0.0.1:7070",
	 .help = "HTTP server: metrics and health"},
	{.name = "ui-listen",
	 .kind = OPTION_STRING,
	 .offset = AT(ui_listen),
	 .value_name = "ADDR:PORT",
	 .help = "HTTP server: the page, stored profiles and profiles on demand, and all "
		 "else (default: --listen if it is on loopback, else 127.0.0.1 at the next "
		 "port)"},
	{.name = "web-config",
	 .kind = OPTION_STRING,
	 .offset = AT(web_config),
	 .value_name = "FILE",
	 .help = "TLS and basic authentication of the HTTP server at both addresses, in the web "
		 "configuration format of Prometheus' exporter-toolkit; podprof reads changed "
		 "files again"},
	{.name = "pull",
	 .kind = OPTION_BOOL,
	 .offset = AT(pull),
	 .default_text = "false",
	 .help = "make profiles on demand, at the paths of Go's net/http/pprof, also for "
		 "clients of other machines; clients on loopback get them in any case"},
	{.name = "memory-budget",
	 .kind = OPTION_BYTES,
	 .offset = AT(memory_budget),
	 .value_name = "BYTES",
	 .default_text = "96MiB",
	 .help = "limit of symbol tables, unwind tables, Go heap records and the queues of "
		 "destinations together; other caches have limits of their own"},
	{.name = "allow-unsafe-kernel",
	 .kind = OPTION_BOOL,
	 .offset = AT(allow_unsafe_kernel),
	 .default_text = "false",
	 .help = "sample on kernels that may hang: Linux 5.19 to 6.3 without the fix of "
		 "6.1.36, 6.3.10 and 6.4"},
	{.name = "log-level",
	 .kind = OPTION_CHOICE,
	 .offset = AT(log_level),
	 .live = true,
	 .value_name = "LEVEL",
	 .choices = log_level_choices,
	 .default_text = "info",
	 .help = "debug, info, warn or error"},
	{.name = "log-format",
	 .kind = OPTION_CHOICE,
	 .offset = AT(log_format),
	 .live = true,
	 .value_name = "FORMAT",
	 .choices = log_format_choices,
	 .default_text = "logfmt",
	 .help = "logfmt or json"},
	{.name = "config",
	 .kind = OPTION_STRING,
	 .offset = AT(config_file),
	 .value_name = "FILE",
	 .help = "JSON object with these settings as keys; SIGHUP reloads the file"},
};

const size_t n_options = array_size(options);

void config_error_set(struct config_error *error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
}

const struct option_desc *option_find(const char *name)
{
	for (size_t i = 0; i < n_options; i++)
		if (strcmp(options[i].name, name) == 0)
			return &options[i];
	return NULL;
}

static void *option_at(const struct option_desc *option, struct config *c)
{
	return (char *)c + option->offset;
}

static int set_string(char **at, const char *text)
{
	char *copy = *text ? strdup(text) : NULL; /* an empty value unsets the option */

	if (*text && !copy)
		return -ENOMEM;
	free(*at);
	*at = copy;
	return 0;
}

static int set_bool(bool *at, const char *text)
{
	bool yes = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;

	if (!yes && strcmp(text, "false") != 0 && strcmp(text, "0") != 0)
		return CONFIG_BAD;
	*at = yes;
	return 0;
}

static int set_choice(const struct option_desc *option, unsigned int *at, const char *text)
{
	for (unsigned int i = 0; option->choices[i]; i++)
		if (strcmp(text, option->choices[i]) == 0) {
			*at = i;
			return 0;
		}
	return CONFIG_BAD;
}

static int add_item(const struct option_desc *option, struct config_list *list, const char *text)
{
	if (list->n == (option->list_max ? option->list_max : CONFIG_LIST_MAX))
		return CONFIG_BAD;
	list->items[list->n] = strdup(text);
	if (!list->items[list->n])
		return -ENOMEM;
	list->n++;
	return 0;
}

/* The valid form of a value, for the error: a constant string, or made in @words. */
static const char *option_form(const struct option_desc *option, char *words, size_t size)
{
	size_t n = 0;

	switch (option->kind) {
	case OPTION_UINT:
		return "give a number, such as 97";
	case OPTION_SHARE:
		return "give a share from 0 to 1, such as 0.02";
	case OPTION_DURATION:
		return "give a time with a unit, such as 250ms, 60s, 5m or 24h";
	case OPTION_BYTES:
		return "give a size, such as 4096, 96MiB or 2GiB";
	case OPTION_BOOL:
		return "give true or false";
	case OPTION_LIST:
		return "too many values";
	case OPTION_CHOICE:
		for (size_t i = 0; option->choices[i] && n < size; i++)
			n += (size_t)snprintf(words + n, size - n, "%s%s",
					      i ? ", " : "give one of ", option->choices[i]);
		return words;
	case OPTION_STRING:
		break;
	}
	return "give another text"; /* strings are unchanged */
}

int option_set(const struct option_desc *option, struct config *c, const char *text,
	       const char *source, struct config_error *ret_error)
{
	void *at = option_at(option, c);
	char words[128];
	int r = 0;

	switch (option->kind) {
	case OPTION_STRING:
		r = set_string(at, text);
		break;
	case OPTION_UINT:
		r = strview_only_u64(strview_of(text), 10, at) ? 0 : CONFIG_BAD;
		break;
	case OPTION_SHARE:
		r = quantity_share(text, at) ? 0 : CONFIG_BAD;
		break;
	case OPTION_DURATION:
		r = quantity_duration(text, at) ? 0 : CONFIG_BAD;
		break;
	case OPTION_BYTES:
		r = quantity_bytes(text, at) ? 0 : CONFIG_BAD;
		break;
	case OPTION_BOOL:
		r = set_bool(at, text);
		break;
	case OPTION_CHOICE:
		r = set_choice(option, at, text);
		break;
	case OPTION_LIST:
		r = add_item(option, at, text);
		break;
	}
	if (r == CONFIG_BAD)
		config_error_set(ret_error, "%s: '%s' is not valid: %s", source, text,
				 option_form(option, words, sizeof(words)));
	return r;
}

void option_reset(const struct option_desc *option, struct config *c)
{
	struct config_list *list = option_at(option, c);

	if (option->kind != OPTION_LIST)
		return;
	for (size_t i = 0; i < list->n; i++)
		free(list->items[i]);
	*list = (struct config_list){0};
}
