// SPDX-License-Identifier: Apache-2.0
/*
 * The language runtime of a process, as the readers of agent/runtimes see it: release, addresses,
 * and the frames of each thread at this moment. The process is not stopped.
 */
#include "cmd/inspect.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "cmd/cmd.h"
#include "cmd/cmdline.h"
#include "cmd/view.h"
#include "procmap/memory.h"
#include "runtimes/hotspot_process.h"
#include "runtimes/python_code.h"
#include "runtimes/python_frames.h"
#include "runtimes/python_target.h"
#include "runtimes/runtime_files.h"
#include "runtimes/v8_process.h"

/* Frames of a thread that are printed; Python's own limit is 1,000 calls. Reached: the outer frames
 * are missing. */
#define FRAMES_MAX 4096

struct options {
	bool json;
	const char *proc_root;
	pid_t pid;
};

/* The process, and the result. */
struct looking {
	struct root proc;
	struct pid_id id;
	struct process_memory memory;
	struct runtime_files *images;
	struct python_target target;
	struct python_threads *threads;
	struct python_frame *frames; /* room for FRAMES_MAX */
	int outcome;
	struct runtime_files *java_files;
	struct hotspot_target java;
	int java_outcome; /* of a process without Python */
	struct runtime_files *v8_files;
	struct v8_target v8;
	int v8_outcome; /* of a process without Python and Java */
};

/* clang-format off */
static const char help[] =
	"usage: podprof inspect runtime [--json] [--proc-root PATH] PID\n"
	"\n"
	"Shows the language runtime of a process:\n"
	"  Python   the release, the source of its layout, the addresses of the evaluation loop,\n"
	"           and the Python frames of each thread, innermost first. The process is not\n"
	"           stopped, so the frames of a busy thread may not belong together.\n"
	"  HotSpot  the release, the addresses of the code heaps and of the interpreter.\n"
	"  V8       the release, and the addresses of its builtins.\n"
	"\n"
	"state:\n"
	"  ok             podprof shows functions\n"
	"  absent         no runtime\n"
	"  version        a release other than Python 3.6 to 3.15, Java 8 and later, Node 16 and\n"
	"                 later, or no final one\n"
	"  free_threaded  Python 3.15 without the interpreter lock\n"
	"  machine        another machine than x86-64 or arm64\n"
	"  compressed     V8 with pointers of 32 bits\n"
	"  no_builtins    the addresses of V8's builtins are not known\n"
	"  offsets, no_runtime, no_loop, malformed\n"
	"                 podprof does not understand the file\n"
	"  odd, unreadable\n"
	"                 the memory of the process contradicts the layout\n"
	"  not_ready      no thread runs Python yet\n"
	"  no_state       the pointer to a thread's state was not found\n"
	"  gone           the process has ended, or runs another program\n"
	"  denied         podprof may not read the process\n"
	"\n"
	"  --json            one JSON object; null for unknown values:\n"
	"                    Python   {\"state\",\"runtime\",\"path\",\"version\",\"offsets\",\n"
	"                             \"bias\",\"loops\":[{\"start\",\"limit\"}],\"state_at\",\n"
	"                             \"state_slot\",\"threads\":[{\"thread\",\"tid\",\n"
	"                             \"subinterpreter\",\"frames\":[{\"name\",\"file\",\"line\",\n"
	"                             \"start_line\"}]}]}\n"
	"                    HotSpot  {\"state\",\"runtime\",\"path\",\"version\",\"bias\",\n"
	"                             \"heaps\":[{\"start\",\"limit\"}],\"interpreter\":{\"start\",\n"
	"                             \"limit\"}}\n"
	"                    V8       {\"state\",\"runtime\",\"path\",\"version\",\"bias\",\n"
	"                             \"builtins\":[{\"start\",\"limit\"}]}\n"
	"                    state_at: the pointer to the thread's state, from the thread pointer\n"
	"                    on. With musl: a pointer to an array, with the pointer at state_slot\n"
	"  --proc-root PATH  the host's /proc (/proc)\n"
	"  --help            this text\n";
/* clang-format on */

static void looking_deinit(struct looking *l)
{
	free(l->frames);
	free(l->threads);
	runtime_files_free(l->images);
	runtime_files_free(l->java_files);
	runtime_files_free(l->v8_files);
	process_memory_deinit(&l->memory);
	root_deinit(&l->proc);
}

/* ---------------------------------------------------------------- output */

/* "3.11.2"; "3.9" if the rest is not known; null for neither. */
static json_t *json_of_version(const struct python_layout *layout)
{
	char text[32];

	if (!layout->version)
		return json_null();
	if (layout->release & 0xffff)
		snprintf(text, sizeof(text), "%u.%u.%u", layout->version >> 8,
			 layout->version & 0xff, layout->release >> 8 & 0xff);
	else
		snprintf(text, sizeof(text), "%u.%u", layout->version >> 8, layout->version & 0xff);
	return json_string(text);
}

static json_t *json_of_frame(struct looking *l, const struct python_frame *frame)
{
	_cleanup_(python_code_deinit) struct python_code code = {0};
	int r = python_code_read(&l->memory.memory, &l->target.image.layout, frame->code, NULL,
				 &code);
	uint32_t line;

	if (r)
		return json_pack("{s:n, s:n, s:n, s:n}", "name", "file", "line", "start_line");
	line = python_code_line(&code, frame->place);
	return json_pack("{s:o, s:o, s:o, s:i}", "name", view_text(code.name), "file",
			 view_text(code.file), "line", line ? json_integer(line) : json_null(),
			 "start_line", (int)code.first_line);
}

static json_t *json_of_thread(struct looking *l, const struct python_thread *t)
{
	json_t *frames = json_array();
	size_t n = 0;

	/* a list that ends early is shown as far as it was read */
	(void)python_frames_read(&l->memory.memory, &l->target.process, t->state, FRAMES_MAX,
				 l->frames, &n);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(frames, json_of_frame(l, &l->frames[i]));
	return json_pack("{s:o, s:o, s:b, s:o}", "thread", view_hex(t->id), "tid",
			 t->native ? json_integer((json_int_t)t->native) : json_null(),
			 "subinterpreter", t->sub, "frames", frames);
}

static json_t *json_of_all(struct looking *l)
{
	const bool ok = l->outcome == PYTHON_OK;
	const struct python_target *t = &l->target;
	json_t *threads = json_array(), *loops = json_array();

	for (size_t i = 0; ok && i < t->image.n_loops; i++)
		json_array_append_new(loops, json_pack("{s:o, s:o}", "start",
						       view_hex(t->process.loops[i][0]), "limit",
						       view_hex(t->process.loops[i][1])));
	for (size_t i = 0; ok && i < l->threads->n; i++)
		json_array_append_new(threads, json_of_thread(l, &l->threads->items[i]));
	return json_pack("{s:s, s:s?, s:o, s:o, s:s?, s:o, s:o, s:o, s:o, s:o}", "state",
			 python_outcome_name(l->outcome), "runtime",
			 l->outcome == PYTHON_ABSENT ? NULL : "python", "path", view_text(t->path),
			 "version", json_of_version(&t->image.layout), "offsets",
			 !ok				? NULL
			 : t->image.layout.is_described ? "described by the image"
							: "by version",
			 "bias", ok ? view_hex(t->bias) : json_null(), "loops", loops, "state_at",
			 ok ? json_integer(t->process.way.at) : json_null(), "state_slot",
			 ok && t->process.way.in_array ? json_integer(t->process.way.slot)
						       : json_null(),
			 "threads", threads);
}

static void print_thread(const json_t *thread)
{
	const json_t *frame;
	size_t i;

	view_print_text(thread, "\nthread {thread}[tid? ({tid})][subinterpreter?, of a "
				"subinterpreter]\n");
	json_array_foreach(json_object_get(thread, "frames"), i, frame)
		view_print_text(frame, "  {name|?} ({file|?}:{line|?})\n");
}

static json_t *json_of_range(uint64_t start, uint64_t limit)
{
	return json_pack("{s:o, s:o}", "start", view_hex(start), "limit", view_hex(limit));
}

static json_t *json_of_java(const struct hotspot_target *t, int outcome)
{
	const bool ok = outcome == HOTSPOT_OK;
	json_t *heaps = json_array();
	char version[40] = "";

	if (t->version[0])
		snprintf(version, sizeof(version), "%u.%u.%u", t->version[0], t->version[1],
			 t->version[2]);
	for (size_t i = 0; ok && i < HOTSPOT_HEAPS_MAX && t->process.heaps[i].segments; i++)
		json_array_append_new(
			heaps, json_of_range(t->process.heaps[i].low, t->process.heaps[i].limit));
	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "state",
			 hotspot_outcome_name(outcome), "runtime", "java", "path",
			 view_text(t->path), "version",
			 *version ? json_string(version) : json_null(), "bias",
			 ok ? view_hex(t->bias) : json_null(), "heaps", heaps, "interpreter",
			 ok ? json_of_range(t->process.interpreter, t->process.interpreter_limit)
			    : json_null());
}

static int print_java(json_t *all, bool json)
{
	const json_t *item;
	size_t i;

	if (json || !all)
		return view_print(all, json, "");
	view_print_text(all, "state    {state}\nruntime  {runtime}\n[path?image    "
			     "{path}\n][version?version  {version}\n]");
	json_array_foreach(json_object_get(all, "heaps"), i, item)
		view_print_text(item, "heap     {start} - {limit}\n");
	if (json_is_object(json_object_get(all, "interpreter")))
		view_print_text(json_object_get(all, "interpreter"),
				"interp   {start} - {limit}\n");
	json_decref(all);
	return 0;
}

static json_t *json_of_v8(const struct v8_target *t, int outcome)
{
	const bool ok = outcome == V8_OK;
	json_t *builtins = json_array();
	char version[40] = "";

	if (t->image.version[0])
		snprintf(version, sizeof(version), "%u.%u.%u", t->image.version[0],
			 t->image.version[1], t->image.version[2]);
	if (ok)
		json_array_append_new(
			builtins, json_of_range(t->process.builtins[0], t->process.builtins[1]));
	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "state", v8_outcome_name(outcome),
			 "runtime", "v8", "path", view_text(t->path), "version",
			 *version ? json_string(version) : json_null(), "bias",
			 ok ? view_hex(t->bias) : json_null(), "builtins", builtins);
}

static int print_v8(json_t *all, bool json)
{
	const json_t *item;
	size_t i;

	if (json || !all)
		return view_print(all, json, "");
	view_print_text(all, "state    {state}\nruntime  {runtime}\n[path?image    "
			     "{path}\n][version?version  {version}\n]");
	json_array_foreach(json_object_get(all, "builtins"), i, item)
		view_print_text(item, "builtins {start} - {limit}\n");
	json_decref(all);
	return 0;
}

static int print(json_t *all, bool json)
{
	const json_t *item;
	size_t i;

	if (json || !all)
		return view_print(all, json, "");
	view_print_text(all, "state    {state}\n[runtime?runtime  {runtime}\n][path?image    "
			     "{path}\n][version?version  {version}\n][offsets?offsets  "
			     "{offsets}\n]");
	json_array_foreach(json_object_get(all, "loops"), i, item)
		view_print_text(item, "loop     {start} - {limit}\n");
	view_print_text(all, "[state_at?pointer  thread pointer + {state_at}\n]"
			     "[state_slot?array    of musl, the state is at {state_slot}\n]");
	json_array_foreach(json_object_get(all, "threads"), i, item)
		print_thread(item);
	json_decref(all);
	return 0;
}

/* ---------------------------------------------------------------- finding */

/* 0, with the outcome in @l; -errno. */
static int look(struct looking *l)
{
	int r;

	l->threads = malloc(sizeof(*l->threads));
	l->frames = calloc(FRAMES_MAX, sizeof(*l->frames));
	if (!l->threads || !l->frames)
		return -ENOMEM;
	r = python_outcome_of_memory(process_memory_init(&l->memory, &l->proc, &l->id));
	if (!r)
		r = runtime_files_new(&python_probe, &l->images);
	if (!r)
		r = python_target_find(l->images, &l->proc, &l->id, &l->memory.memory, &l->target,
				       l->threads);
	l->outcome = r;
	if (r != PYTHON_ABSENT)
		return r < 0 ? r : 0;
	r = runtime_files_new(&hotspot_probe, &l->java_files);
	if (!r)
		r = hotspot_target_find(l->java_files, &l->proc, &l->id, &l->memory.memory,
					&l->java);
	l->java_outcome = r;
	if (r != HOTSPOT_ABSENT)
		return r < 0 ? r : 0;
	r = runtime_files_new(&v8_probe, &l->v8_files);
	if (!r)
		r = v8_target_find(l->v8_files, &l->proc, &l->id, &l->memory.memory, &l->v8);
	l->v8_outcome = r;
	return r < 0 ? r : 0;
}

static int print_all(struct looking *l, bool json)
{
	if (l->outcome == PYTHON_ABSENT && l->java_outcome != HOTSPOT_ABSENT)
		return print_java(json_of_java(&l->java, l->java_outcome), json);
	if (l->outcome == PYTHON_ABSENT && l->v8_outcome != V8_ABSENT)
		return print_v8(json_of_v8(&l->v8, l->v8_outcome), json);
	return print(json_of_all(l), json);
}

static int show(const struct options *o)
{
	_cleanup_(looking_deinit) struct looking l = {.proc = ROOT_INIT, .memory = {.fd = -1}};
	int r;

	if (cmdline_open_proc("inspect runtime", o->proc_root, &l.proc) != CMD_DONE)
		return CMD_FAILED;
	r = pid_read(&l.proc, o->pid, &l.id);
	if (r > 0) {
		cmd_error("inspect runtime: no process %d in %s; 'ps' lists the processes",
			  (int)o->pid, o->proc_root);
		return CMD_FAILED;
	}
	if (!r)
		r = look(&l);
	if (!r && print_all(&l, o->json))
		r = -ENOMEM;
	if (r < 0) {
		cmd_error("inspect runtime: cannot read process %d: %s", (int)o->pid, strerror(-r));
		return CMD_FAILED;
	}
	return CMD_DONE;
}

/* ---------------------------------------------------------------- command */

int inspect_runtime(int argc, char **argv)
{
	struct options o = {.proc_root = "/proc"};
	const struct cmdline_option options[] = {
		{.name = "json", .given = &o.json},
		{.name = "proc-root", .string = &o.proc_root},
	};
	struct cmdline line = {
		.command = "inspect runtime",
		.help = help,
		.options = options,
		.n_options = array_size(options),
	};
	int status;

	if (!cmdline_parse(&line, argc, argv, &status))
		return status;
	if (line.n_operands != 1 || !cmdline_pid(line.operands[0], &o.pid))
		return cmdline_usage(&line, "give one PID");
	return cmdline_finish("inspect runtime", show(&o));
}
