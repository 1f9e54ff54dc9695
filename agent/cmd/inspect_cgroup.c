// SPDX-License-Identifier: Apache-2.0
/*
 * One command for two questions: the meaning of cgroup paths (FILE, one record a line, for paths
 * collected elsewhere), and the containers on this node (no FILE).
 */
#include "cmd/inspect.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "cmd/cmd.h"
#include "cmd/cmdline.h"
#include "cmd/view.h"
#include "discovery/cgroup.h"
#include "discovery/discovery.h"

/* Bytes of one line: fourteen hierarchies of 4 KiB paths are 56 KiB, escapes may double the size.
 * Reached: an error names it. */
#define RECORD_BYTES_MAX (256u << 10)

struct options {
	bool json;
	const char *cgroupfs_root;
	const char *file;
};

static const char help[] =
	"usage: podprof inspect cgroup [--json] [--cgroupfs-root PATH] [FILE|-]\n"
	"\n"
	"Without FILE: lists the containers on this node, by their cgroups.\n"
	"With FILE: shows the meaning of each line, as one JSON object a line. A line is a cgroup\n"
	"path, or the text of /proc/PID/cgroup with newlines written as \\n (and \\r, \\t, \\\\).\n"
	"'-' reads standard input.\n"
	"\n"
	"  --json                one JSON object a line instead of a table:\n"
	"                        {\"runtime\",\"container_id\",\"pod_uid\",\"qos\",\"kind\"}; null "
	"if the\n"
	"                        path does not contain it\n"
	"  --cgroupfs-root PATH  mount point of the cgroup file systems (default: found by "
	"podprof)\n"
	"  --help                this text\n";

static int print_id(const struct cgroup_id *id, bool json)
{
	json_t *object = json_pack(
		"{s:s, s:o, s:o, s:s?, s:s}", "runtime", cgroup_runtime_name(id->runtime),
		"container_id", view_text(id->container_id), "pod_uid", view_text(id->pod_uid),
		"qos", cgroup_qos_name(id->qos), "kind", cgroup_kind_name(id->kind));

	return view_print(object, json,
			  "{runtime:-10}  {container_id:-64}  {pod_uid:-36}  {qos:-10}  {kind}\n");
}

/* The four escapes, in place; any other backslash stays, as in systemd's "\x2d". */
static size_t unescape(char *s, size_t n)
{
	static const char from[] = "nrt\\", to[] = "\n\r\t\\";
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		const char *escape =
			s[i] == '\\' && i + 1 < n ? memchr(from, s[i + 1], sizeof(from) - 1) : NULL;

		s[len] = s[i];
		if (escape) {
			s[len] = to[escape - from];
			i++;
		}
		len++;
	}
	return len;
}

static int inspect_lines(FILE *file, const char *name)
{
	_cleanup_(freep) char *line = malloc(RECORD_BYTES_MAX);
	size_t number = 0, n;

	if (!line)
		return CMD_FAILED;
	while (fgets(line, RECORD_BYTES_MAX, file)) {
		struct cgroup_id id;

		number++;
		n = strlen(line);
		if (n && line[n - 1] == '\n') {
			n--;
		} else if (n == RECORD_BYTES_MAX - 1) {
			cmd_error(
				"inspect cgroup: line %zu of %s is longer than %u bytes; write one "
				"record a line",
				number, name, RECORD_BYTES_MAX - 2);
			return CMD_FAILED;
		}
		cgroup_parse(strview_of_bytes(line, unescape(line, n)), &id);
		if (print_id(&id, true)) {
			cmd_error("inspect cgroup: out of memory at line %zu of %s", number, name);
			return CMD_FAILED;
		}
	}
	if (ferror(file)) {
		cmd_error("inspect cgroup: cannot read %s: %s", name, strerror(errno));
		return CMD_FAILED;
	}
	return CMD_DONE;
}

static int inspect_file(const char *name)
{
	_cleanup_(fclosep) FILE *file = NULL;

	if (strcmp(name, "-") == 0)
		return inspect_lines(stdin, "standard input");
	file = fopen(name, "re");
	if (!file) {
		cmd_error("inspect cgroup: cannot open %s: %s; give a file with one record a line, "
			  "or "
			  "'-'",
			  name, strerror(errno));
		return CMD_FAILED;
	}
	return inspect_lines(file, name);
}

/* ---- the containers of this node ---- */

static int print_entities(struct discovery *d, bool json)
{
	struct entity *entity = NULL;
	size_t n = 0;

	if (!json)
		printf("%-10s  %-64s  %-36s  %-10s  %s\n", "RUNTIME", "CONTAINER ID", "POD UID",
		       "QOS", "KIND");
	while ((entity = discovery_next_entity(d, entity))) {
		if (entity->kind != ENTITY_CONTAINER)
			continue;
		if (print_id(&entity->id, json))
			return CMD_FAILED;
		n++;
	}
	if (!n && !json)
		puts("(none)");
	return CMD_DONE;
}

static int inspect_node(const struct options *options)
{
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	struct discovery_opts opts = {
		.proc = &proc,
		.cgroupfs_root = options->cgroupfs_root,
		.node_name = "",
	};
	struct discovery *d;
	int r, status;

	r = root_open("/proc", &proc);
	if (r) {
		cmd_error("inspect cgroup: cannot open /proc: %s", root_why(r));
		return CMD_FAILED;
	}
	r = discovery_new(&opts, &d);
	if (r) {
		cmd_error("inspect cgroup: no cgroups found at %s (%s); set --cgroupfs-root",
			  options->cgroupfs_root ? options->cgroupfs_root : "/sys/fs/cgroup",
			  hierarchy_why(r));
		return CMD_FAILED;
	}
	status = print_entities(d, options->json);
	discovery_free(d);
	return status;
}

/* ---- the command line ---- */

/* True to go on; else *@ret_exit is the status to leave with. */
static bool parse_options(int argc, char **argv, struct options *o, int *ret_exit)
{
	const struct cmdline_option options[] = {
		{.name = "json", .given = &o->json},
		{.name = "cgroupfs-root", .string = &o->cgroupfs_root},
	};
	struct cmdline line = {
		.command = "inspect cgroup",
		.help = help,
		.options = options,
		.n_options = array_size(options),
	};

	if (!cmdline_parse(&line, argc, argv, ret_exit))
		return false;
	if (line.n_operands > 1) {
		*ret_exit =
			cmdline_usage(&line, "give one FILE; unexpected '%s'", line.operands[1]);
		return false;
	}
	o->file = line.n_operands ? line.operands[0] : NULL;
	return true;
}

int inspect_cgroup(int argc, char **argv)
{
	struct options options = {0};
	int status;

	if (!parse_options(argc, argv, &options, &status))
		return status;
	status = options.file ? inspect_file(options.file) : inspect_node(&options);
	return cmdline_finish("inspect cgroup", status);
}
