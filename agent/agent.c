// SPDX-License-Identifier: Apache-2.0
/*
 * The order of the parts is the order of the data flow: discovery, the two profilers, export,
 * server. A timer ends each window. At the end of the run the agent ends the last window, and the
 * loop runs on until everything is sent or the time limit has passed.
 */
#include "agent.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/cpu_share.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/open_files.h"
#include "base/root.h"
#include "base/slice.h"
#include "base/supervise.h"
#include "cpu/profiler.h"
#include "cpu/series.h"
#include "discovery/discovery.h"
#include "discovery/procview.h"
#include "export/export.h"
#include "goprofile/http.h"
#include "goprofile/profiler.h"
#include "naming/naming.h"
#include "relabel/pattern.h"
#include "server/health.h"
#include "server/listen.h"
#include "server/process.h"
#include "server/server.h"
#include "server/web_access.h"
#include "settings.h"
#include "symbolize/debuginfod.h"
#include "uisource/uisource.h"

/* The first window is short, so a new user soon sees a result. */
#define AGENT_FIRST_WINDOW_NS (15 * NSEC_PER_SEC)
/* Time limit for the end of the run, as a part of AGENT_GRACE_NS. */
#define AGENT_FLUSH_NS	      (8 * NSEC_PER_SEC)
/* Part of AGENT_FLUSH_NS for names of functions. On a busy node a container's files may take all of
 * it, and the profiles of the others wait for the same thread. */
#define AGENT_SYMBOLS_NS      (5 * NSEC_PER_SEC)
/* Part of the first window reserved for the names of new containers. */
#define AGENT_NAMES_NS	      (3 * NSEC_PER_SEC)
/* Part of the first window for the names of the containers that are there; the API server's first
 * answer may take seconds. Containers without names by then have no baseline. */
#define AGENT_BASELINE_NS     (5 * NSEC_PER_SEC)
#define AGENT_FLUSH_POLL_NS   (50 * NSEC_PER_MSEC)
/* Entities named in the first window's log lines. Reached: the others are on the page. */
#define AGENT_SHOWN_MAX	      8

struct agent {
	const struct config *config;
	struct config reloaded; /* owns the changeable settings after a reload; config before */
	struct loop *loop;
	struct root proc;
	struct root sys;
	struct metric_list metrics;
	struct health health;
	struct discovery *discovery;
	struct naming *naming;
	struct export *export;
	struct debuginfod *debuginfod; /* NULL: no servers */
	struct cpu_profiler *cpu;      /* NULL: turned off, or refused by the kernel */
	struct go_profiler *heap;      /* NULL: turned off */
	struct go_profile_http *pull;  /* NULL: not asked for */
	struct pull_sources pulls;
	struct uisource *ui;
	struct server *server;
	struct cpu_share http_share; /* of the server and of pulls */
	struct process_metrics *process;
	struct listen_plan addresses;
	bool may_pull;
	struct loop_source *window;
	struct loop_source *flush;
	uint64_t window_began_ns; /* boot clock: the wall clock may be set meanwhile */
	uint64_t flush_deadline_ns;
	unsigned int n_windows;
	bool has_profiles;
	bool told_nothing; /* the log has said that nothing is selected */
	bool stopping;
	char url[LISTEN_TEXT_MAX + sizeof("https:///")];
	char no_cpu[sizeof(struct bpfobj_why) + 64]; /* for the page; "": there are CPU profiles */
};

static void on_profile(void *ctx, struct profile *profile)
{
	struct agent *a = ctx;

	export_submit(a->export, profile);
	if (!a->has_profiles)
		log_info("the first profiles are there", log_str("page", a->url));
	a->has_profiles = true;
}

/* On the thread of CPU reports. */
static void on_unnamed(void *ctx, uint64_t owner, const char *build_id, int fd)
{
	const struct agent *a = ctx;

	export_offer_file(a->export, owner, build_id, fd);
}

/* Says once why a selection excludes everything. Without names most selections do: a warning. With
 * names the node may have nothing of the kind. */
static void tell_nothing(struct agent *a)
{
	size_t n = 0, n_unnamed = 0;
	struct entity *entity = NULL;
	const char *why = NULL;
	char sources[HEALTH_REASON_MAX] = "";

	while ((entity = discovery_next_entity(a->discovery, entity))) {
		if (!entity_alive(entity))
			continue;
		if (!entity->left_out)
			return;
		n++;
		n_unnamed += entity->kind == ENTITY_CONTAINER && !entity->named;
		why = entity->left_out;
	}
	if (!n || a->told_nothing)
		return;
	a->told_nothing = true;
	naming_describe(a->naming, sources, sizeof(sources));
	if (n_unnamed)
		log_warn("nothing is profiled: all is excluded, and containers have no names; let "
			 "podprof read the names ('podprof doctor' tells how), or change the "
			 "selection",
			 log_uint("excluded", n), log_uint("without_names", n_unnamed),
			 log_str("why", why), log_str("names", sources));
	else
		log_info(
			"nothing is profiled: all is excluded; 'podprof inspect targets' tells why",
			log_uint("excluded", n), log_str("why", why), log_str("names", sources));
}

struct shown_entity {
	const struct entity *entity;
	uint64_t cpu_ns;
};

/* Keep the largest, in order. */
static void shown_add(struct shown_entity *shown, const struct entity *entity, uint64_t cpu_ns)
{
	size_t i = AGENT_SHOWN_MAX;

	for (; i > 0 && cpu_ns > shown[i - 1].cpu_ns; i--)
		if (i < AGENT_SHOWN_MAX)
			shown[i] = shown[i - 1];
	if (i < AGENT_SHOWN_MAX)
		shown[i] = (struct shown_entity){entity, cpu_ns};
}

/* Shows in the log that profiling works, and for which entities. */
static void show_first_window(struct agent *a)
{
	struct shown_entity shown[AGENT_SHOWN_MAX] = {{0}};
	const struct entity *entity = NULL;

	while (a->cpu && (entity = discovery_next_entity(a->discovery, entity))) {
		const struct series *series = cpu_profiler_series(a->cpu, entity->key);

		if (series)
			shown_add(shown, entity, series->value_last);
	}
	for (size_t i = 0; i < AGENT_SHOWN_MAX && shown[i].entity; i++) {
		const char *service = labels_get(&shown[i].entity->labels, "service_name");

		log_info("seen", log_str("kind", entity_kind_name(shown[i].entity->kind)),
			 log_str("service", service ? service : ""),
			 log_uint("cpu_ms", shown[i].cpu_ns / NSEC_PER_MSEC));
	}
}

static void end_window(struct agent *a)
{
	const uint64_t now = nsec_boot(), duration = now - a->window_began_ns;
	const uint64_t start = nsec_wall() - duration;

	a->window_began_ns = now;
	a->n_windows++;
	if (a->cpu)
		cpu_profiler_end_window(a->cpu, start, duration);
	if (a->heap)
		go_profiler_end_window(a->heap, start, duration);
	uisource_end_window(a->ui, duration);
	if (a->n_windows == 1)
		show_first_window(a);
	if (a->naming)
		tell_nothing(a);
}

static void on_window(void *ctx)
{
	end_window(ctx);
}

static void on_flushed(void *ctx)
{
	struct agent *a = ctx;

	loop_stop(a->loop);
}

/* The workers make the last reports; afterwards export sends the remaining profiles. */
static void on_flush(void *ctx)
{
	struct agent *a = ctx;
	uint64_t now = nsec_monotonic();
	bool pending = (a->cpu && cpu_profiler_pending(a->cpu)) ||
		       (a->heap && go_profiler_pending(a->heap));

	if (pending && a->cpu && now + AGENT_FLUSH_NS - AGENT_SYMBOLS_NS >= a->flush_deadline_ns)
		cpu_profiler_stop_symbols(a->cpu);
	if (pending && now < a->flush_deadline_ns)
		return;
	(void)loop_disarm(a->flush);
	export_flush(a->export, now < a->flush_deadline_ns ? a->flush_deadline_ns - now : 0,
		     on_flushed, a);
}

static void on_stop(void *ctx, int signo)
{
	struct agent *a = ctx;

	if (a->stopping)
		return;
	a->stopping = true;
	log_info("ending after sending the last window", log_str("signal", strsignal(signo)));
	a->flush_deadline_ns = nsec_monotonic() + AGENT_FLUSH_NS;
	export_hurry(a->export);
	(void)loop_disarm(a->window);
	if (a->cpu)
		cpu_profiler_finish(a->cpu, AGENT_NAMES_NS);
	if (a->heap)
		go_profiler_finish(a->heap, AGENT_NAMES_NS);
	end_window(a);
	(void)loop_arm(a->flush, AGENT_FLUSH_POLL_NS, AGENT_FLUSH_POLL_NS);
}

static void on_stop_at_once(void *ctx, int signo)
{
	struct agent *a = ctx;

	(void)signo;
	log_warn("second signal, ending at once");
	loop_stop(a->loop);
}

/* Failures of the start: one line each, at the failed step. */
static int start_failed(int r, const char *what, const char *why)
{
	log_error(what, log_str("why", why && *why ? why : strerror(r < 0 ? -r : EINVAL)));
	return r < 0 ? r : -EINVAL;
}

/* Reports the invisible processes of the node in the log and on /-/ready, without effect on
 * readiness: the visible processes are profiled. False without a procfs, from which all names come.
 */
static bool tell_procview(struct agent *a)
{
	char text[PROCVIEW_TEXT_BYTES];
	struct procview view;

	procview_look(&a->proc, &view);
	if (view.absent)
		return false;
	if (procview_tell(&view, text))
		log_warn("some processes are hidden", log_str("why", text));
	health_set(&a->health, HEALTH_READY, "processes", true, *text ? text : NULL);
	return true;
}

/* Before the profilers, which make profiles on demand if a client may ask for them. */
static int start_addresses(struct agent *a)
{
	const struct config *c = a->config;
	int r = listen_plan(c->listen, c->ui_listen, &a->addresses);

	if (r) {
		log_error("cannot listen; --listen and --ui-listen need " CONFIG_LISTEN_FORM,
			  log_str("listen", r == LISTEN_BAD ? c->listen : c->ui_listen));
		return -EINVAL;
	}
	a->may_pull = c->pull || listen_is_loopback(&a->addresses.ui);
	return 0;
}

static int no_proc(const struct agent *a, const char *why)
{
	log_error("cannot open --proc-root: give a mounted procfs",
		  log_str("path", a->config->proc_root), log_str("why", why));
	return -EINVAL;
}

static int start_roots(struct agent *a)
{
	int r = root_open(a->config->proc_root, &a->proc);

	if (r)
		return no_proc(a, root_why(r));
	r = root_open("/sys", &a->sys);
	if (r)
		return start_failed(r, "cannot open /sys", root_why(r));
	return tell_procview(a) ? 0 : no_proc(a, "no procfs is mounted there");
}

/* ---- settings that can change at run time */

static int reload(struct agent *a, struct config *fresh, struct config_error *error)
{
	struct naming_settings settings;
	struct pattern_error why = {""};
	int r = config_load(a->config->argc, a->config->argv, fresh, error);

	if (r || !a->naming)
		return r;
	settings = settings_naming(fresh);
	r = naming_configure(a->naming, &settings, &why);
	if (r > 0)
		snprintf(error->text, sizeof(error->text), "%s", why.text);
	return r;
}

/* Applies the log settings, the selection and the labels. The log names the other changed settings.
 */
static void on_reload(void *ctx, int signo)
{
	_cleanup_(config_deinit) struct config fresh = {0};
	struct agent *a = ctx;
	struct config_error error = {""};
	char changed[256];
	int r = reload(a, &fresh, &error);

	(void)signo;
	if (r) {
		log_warn("configuration not reloaded, keeping the old settings",
			 log_str("why", r < 0 ? strerror(-r) : error.text));
		return;
	}
	log_set(fresh.log_level, fresh.log_format);
	config_diff(a->config, &fresh, changed, sizeof(changed));
	log_info("configuration reloaded", log_str("need_restart", changed));
	config_deinit(&a->reloaded);
	a->reloaded = fresh;
	a->told_nothing = false;
	fresh = (struct config){0};
}

static int start_loop(struct agent *a)
{
	struct loop_source *source;
	int r = loop_new(&a->loop);

	if (!r)
		r = loop_add_signal(a->loop, SIGINT, on_stop, a, &source);
	if (!r)
		r = loop_add_signal(a->loop, SIGTERM, on_stop, a, &source);
	if (!r)
		r = loop_add_signal(a->loop, SUPERVISE_AT_ONCE, on_stop_at_once, a, &source);
	if (!r)
		r = loop_add_signal(a->loop, SIGHUP, on_reload, a, &source);
	if (!r)
		r = loop_add_timer(a->loop, on_window, a, &a->window);
	if (!r)
		r = loop_add_timer(a->loop, on_flush, a, &a->flush);
	if (!r)
		r = metric_list_add(&a->metrics, loop_collect, a->loop);
	return r ? start_failed(r, "cannot make the event loop", NULL) : 0;
}

static int start_discovery(struct agent *a)
{
	struct discovery_opts opts = settings_discovery(a->config);
	int r;

	opts.loop = a->loop;
	opts.proc = &a->proc;
	opts.grace_ns = 2 * a->config->window_ns;
	r = discovery_new(&opts, &a->discovery);
	if (!r && discovery_is_copy(a->discovery))
		r = HIERARCHY_NO_CGROUPFS;
	if (r)
		return start_failed(r, "cannot read the cgroups; set --cgroupfs-root",
				    hierarchy_why(r));
	return metric_list_add(&a->metrics, discovery_collect, a->discovery);
}

/* Reports the state of each source of pod names, with a reason, in the log and on /-/ready. The
 * state has no effect on readiness, because profiling works without names. */
static void on_metadata(void *ctx, const char *source, bool ok, const char *why)
{
	struct agent *a = ctx;
	char text[HEALTH_REASON_MAX];

	if (a->naming)
		naming_describe(a->naming, text, sizeof(text));
	else
		snprintf(text, sizeof(text), "%s: %s", source, why);
	health_set(&a->health, HEALTH_NOTE, "metadata", ok, text);
	if (ok)
		log_info("names of pods available", log_str("source", source));
	else
		log_warn("no names of pods from this source, keeping known names and retrying",
			 log_str("source", source), log_str("why", why));
}

static int start_naming(struct agent *a)
{
	struct pattern_error error = {""};
	struct settings_naming_opts with;
	int r;

	settings_naming_opts_init(&with, a->config);
	with.opts.loop = a->loop;
	with.opts.discovery = a->discovery;
	with.opts.source = on_metadata;
	with.opts.ctx = a;
	r = naming_new(&with.opts, &a->naming, &error);
	if (r == -EDESTADDRREQ)
		return start_failed(r, METADATA_NO_ADDRESS, METADATA_NO_ADDRESS_REMEDY);
	if (r == -EINVAL) { /* no reason not to profile */
		log_warn("no names from a server: --node-name is not the name of a node",
			 log_str("node", a->config->node_name));
		with.opts.metadata.mode = METADATA_RUNTIME;
		r = naming_new(&with.opts, &a->naming, &error);
	}
	if (r)
		return start_failed(r, "cannot set up labels", error.text);
	return metric_list_add(&a->metrics, naming_collect, a->naming);
}

/* Reports directories of another process on /-/ready, without effect on readiness: profiling works
 * without them. */
static void on_busy_directories(void *ctx, const char *text)
{
	struct agent *a = ctx;

	health_set(&a->health, HEALTH_NOTE, "directories", !*text, *text ? text : NULL);
}

static int start_export(struct agent *a)
{
	const struct config *c = a->config;
	const struct export_opts opts = {
		.loop = a->loop,
		.destinations = (const char *const *)c->destinations.items,
		.n_destinations = c->destinations.n,
		.store_dir = c->store_dir,
		.store_bytes = c->store_bytes,
		.store_age_ns = c->store_age_ns,
		.spool_dir = c->spool_dir,
		.spool_bytes = c->spool_bytes,
		.queue_bytes = c->memory_budget / BUDGET_QUEUE,
		.window_ns = c->window_ns,
		.busy = on_busy_directories,
		.ctx = a,
	};
	_cleanup_(freep) char *error = NULL;
	int r = export_new(&opts, &a->export, &error);

	if (r)
		return start_failed(r, "cannot export", error);
	return metric_list_add(&a->metrics, export_collect, a->export);
}

static int start_debuginfod(struct agent *a)
{
	const struct config *c = a->config;
	const struct debuginfod_opts opts = {
		.urls = (const char *const *)c->debuginfod.items,
		.n_urls = c->debuginfod.n,
		.dir = c->debuginfod_dir,
		.max_bytes = c->debuginfod_bytes,
	};
	int r;

	if (!c->debuginfod.n)
		return 0;
	r = debuginfod_new(&opts, &a->debuginfod);
	if (r)
		return start_failed(r, "cannot keep debug files in debuginfod-dir", strerror(-r));
	return metric_list_add(&a->metrics, debuginfod_collect, a->debuginfod);
}

static void set_no_cpu(struct agent *a, const char *why)
{
	snprintf(a->no_cpu, sizeof(a->no_cpu), "No CPU profiles are recorded: %s", why);
}

/* Without CPU profiles the agent continues: heaps, metrics and the page do not need BPF. The log,
 * /-/ready and the page report the reason. */
static int start_cpu(struct agent *a)
{
	const struct config *c = a->config;
	struct cpu_profiler_opts opts = settings_cpu(c);
	struct bpfobj_why why = {""};
	int r;

	if (!c->cpu_rate) {
		set_no_cpu(a, "--cpu-rate is 0");
		return 0;
	}
	opts.loop = a->loop;
	opts.proc = &a->proc;
	opts.sys = &a->sys;
	opts.discovery = a->discovery;
	opts.limits = export_limits(a->export);
	opts.for_disk = !export_has_destinations(a->export);
	opts.debuginfod = a->debuginfod;
	opts.pull = a->may_pull;
	opts.pull_share = &a->http_share;
	opts.unnamed = export_wants_files(a->export) ? on_unnamed : NULL;
	opts.out = on_profile;
	opts.ctx = a;
	r = cpu_profiler_new(&opts, &why, &a->cpu);
	if (r == -ENOMEM)
		return start_failed(r, "cannot profile CPUs", NULL);
	health_set(&a->health, HEALTH_READY, "cpu profiling", !r, why.text);
	if (r) {
		set_no_cpu(a, why.text);
		log_error("no CPU profiles, continuing without", log_str("why", why.text));
		return 0;
	}
	return metric_list_add(&a->metrics, cpu_profiler_collect, a->cpu);
}

static enum go_profile_mode mode_of_config(unsigned int go_heap)
{
	static const enum go_profile_mode map[CONFIG_GO_HEAP_MAX] = {
		[CONFIG_GO_HEAP_DISABLED] = GO_PROFILE_MODE_DISABLED,
		[CONFIG_GO_HEAP_ENABLED] = GO_PROFILE_MODE_ENABLED,
		[CONFIG_GO_HEAP_FORCE_ANNOTATED] = GO_PROFILE_MODE_FORCE_ANNOTATED,
		[CONFIG_GO_HEAP_FORCE] = GO_PROFILE_MODE_FORCE,
	};

	return map[go_heap];
}

static enum go_profile_wish wish_of_entity(void *ctx, const struct entity *entity)
{
	const struct agent *a = ctx;
	const char *wish;
	bool known;

	if (!a->naming)
		return GO_PROFILE_WISH_NONE;
	wish = naming_setting(entity, GO_PROFILE_WISH_SETTING, &known);
	return known ? go_profile_wish_parse(wish) : GO_PROFILE_WISH_PENDING;
}

static int start_heap(struct agent *a)
{
	const struct go_profiler_opts opts = {
		.loop = a->loop,
		.proc = &a->proc,
		.discovery = a->discovery,
		.mode = mode_of_config(a->config->go_heap),
		.wish = wish_of_entity,
		.heap_bytes = a->config->memory_budget / BUDGET_HEAPS,
		.symbol_bytes = a->config->memory_budget / BUDGET_SYMBOLS,
		.no_contention = !a->config->go_contention,
		.limits = export_limits(a->export),
		.doc_url = a->config->doc_url,
		.out = on_profile,
		.ctx = a,
	};
	int r;

	if (a->config->go_heap == CONFIG_GO_HEAP_DISABLED)
		return 0;
	r = go_profiler_new(&opts, &a->heap);
	if (r)
		return start_failed(r, "cannot read Go heaps", NULL);
	return metric_list_add_parts(&a->metrics, go_profiler_collect, GO_PROFILER_PARTS, a->heap);
}

static int start_pull(struct agent *a)
{
	const struct go_profile_http_opts opts = {
		.loop = a->loop,
		.proc = &a->proc,
		.discovery = a->discovery,
		.mode = mode_of_config(a->config->go_heap),
		.wish = wish_of_entity,
		.ctx = a,
		.max_bytes = a->config->memory_budget / BUDGET_PULLS,
		.symbol_bytes = a->config->memory_budget / BUDGET_PULLS,
		.doc_url = a->config->doc_url,
		.share = &a->http_share,
	};
	int r;

	if (!a->may_pull || a->config->go_heap == CONFIG_GO_HEAP_DISABLED)
		return 0;
	r = go_profile_http_new(&opts, &a->pull);
	if (r)
		return start_failed(r, "cannot read Go processes on demand", NULL);
	return metric_list_add(&a->metrics, go_profile_http_collect, a->pull);
}

static void cache_bytes(struct metric_sink *sink, const char *cache, size_t bytes)
{
	metric_u64(sink, bytes, &(struct metric_label){"cache", cache}, 1);
}

/* One family over all caches, with their common limit. */
static void agent_collect(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc bytes = {"podprof_cache_bytes", METRIC_GAUGE,
							"Memory of the caches.", "bytes"};
	static const struct metric_family_desc limit = {
		"podprof_memory_budget_bytes", METRIC_GAUGE,
		"Limit of caches and queues together, from the settings.", "bytes"};
	const struct agent *a = ctx;

	metric_family(sink, &bytes);
	if (a->cpu) {
		struct cpu_profiler_caches cpu = cpu_profiler_caches(a->cpu);

		cache_bytes(sink, "cpu_symbols", cpu.symbol_bytes);
		cache_bytes(sink, "cpu_mappings", cpu.address_space_bytes);
	}
	if (a->heap) {
		struct go_profile_memory heap = go_profiler_memory(a->heap);

		cache_bytes(sink, "heap_symbols", heap.symbol_bytes);
		cache_bytes(sink, "heap_mappings", heap.address_space_bytes);
		cache_bytes(sink, "heap_records", heap.record_bytes);
		cache_bytes(sink, "heap_files", heap.file_bytes);
	}
	metric_family(sink, &limit);
	metric_u64(sink, a->config->memory_budget, NULL, 0);
}

static struct ui_off off_of(const struct agent *a)
{
	const char *no_cpu = *a->no_cpu ? a->no_cpu : NULL;

	return (struct ui_off){
		.cpu = no_cpu,
		.off_cpu = no_cpu		? no_cpu
			   : a->config->off_cpu ? NULL
						: "No waits are recorded: --off-cpu is 0",
		.go = a->heap ? NULL : "No Go profiles are recorded: --go-heap-profiler disabled",
		.store = export_store(a->export) ? NULL
						 : "No profiles are kept here: no --store-dir",
	};
}

static int start_ui(struct agent *a)
{
	const struct uisource_opts opts = {
		.discovery = a->discovery,
		.cpu = a->cpu,
		.heap = a->heap,
		.store = export_store(a->export),
		.node = a->config->node_name,
		.window_ns = a->config->window_ns,
		.off = off_of(a),
	};

	return uisource_new(&opts, &a->ui);
}

static void on_web_config(void *ctx, const char *error)
{
	const struct agent *a = ctx;

	if (error)
		log_warn("the changed --web-config is not in force, keeping the last one",
			 log_str("file", a->config->web_config), log_str("why", error));
	else
		log_info("read --web-config again", log_str("file", a->config->web_config));
}

/* The caller frees *@ret: NULL without the setting. */
static int start_access(struct agent *a, struct web_access **ret)
{
	const struct web_access_opts opts = {
		.loop = a->loop, .path = a->config->web_config, .told = on_web_config, .ctx = a};
	char error[WEB_ERROR_MAX] = "";
	int r;

	*ret = NULL;
	if (!opts.path)
		return 0;
	r = web_access_new(&opts, ret, error);
	if (r)
		log_error("cannot use --web-config", log_str("why", r > 0 ? error : strerror(-r)));
	return r > 0 ? -EINVAL : r;
}

DEFINE_CLEANUP(struct web_access *, web_access_freep, web_access_free);

static int start_listening(struct agent *a)
{
	_cleanup_(web_access_freep) struct web_access *access = NULL;
	struct server_opts opts = {
		.loop = a->loop,
		.addresses = &a->addresses,
		.metrics = &a->metrics,
		.health = &a->health,
		.ui = uisource_get(a->ui),
		.pull = &a->pulls,
		.share = &a->http_share,
	};
	char address[LISTEN_TEXT_MAX];
	bool is_ui;
	int r = start_access(a, &access);

	if (r)
		return r;
	opts.access = access;
	a->pulls = (struct pull_sources){
		.off = a->may_pull ? NULL : "no profiles on demand here: --pull turns them on",
		.no_cpu = *a->no_cpu ? a->no_cpu : NULL,
		.cpu = a->cpu ? cpu_profiler_pull_source(a->cpu) : NULL,
		.go = go_profile_http_source(a->pull),
	};
	r = server_new(&opts, &is_ui, &a->server);
	if (r) {
		listen_name(is_ui ? &a->addresses.ui : &a->addresses.metrics, address);
		log_error("cannot listen", log_str("flag", is_ui ? "--ui-listen" : "--listen"),
			  log_str("address", address), log_err(r),
			  log_str("why", listen_plan_hint(&a->addresses, r)));
		return r;
	}
	snprintf(a->url, sizeof(a->url), "http%s://%s/", web_access_tls(access) ? "s" : "",
		 server_address(a->server));
	(void)take_ptr(access);
	return metric_list_add(&a->metrics, server_collect, a->server);
}

static int start_server(struct agent *a)
{
	int r = process_metrics_new(&a->process);

	if (!r)
		r = metric_list_add(&a->metrics, process_metrics_collect, a->process);
	if (!r)
		r = metric_list_add(&a->metrics, agent_collect, a);
	if (!r)
		r = start_ui(a);
	if (!r)
		r = start_listening(a);
	return r;
}

static int agent_start(struct agent *a)
{
	int (*const steps[])(struct agent *) = {
		start_addresses, start_roots,  start_loop,	 start_discovery,
		start_naming,	 start_export, start_debuginfod, start_cpu,
		start_heap,	 start_pull,   start_server,
	};
	int r = 0;

	open_files_raise();
	heap_keep_little();
	for (size_t i = 0; i < array_size(steps) && !r; i++)
		r = steps[i](a);
	return r;
}

int agent_new(const struct config *config, struct agent **ret)
{
	struct agent *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	a->config = config;
	a->proc = (struct root)ROOT_INIT;
	a->sys = (struct root)ROOT_INIT;
	a->http_share.parts = SERVER_SHARE_PARTS;
	a->http_share.burst_ns = SERVER_SHARE_BURST_NS;
	r = agent_start(a);
	if (r)
		agent_free(a);
	else
		*ret = a;
	return r;
}

void agent_free(struct agent *a)
{
	if (!a)
		return;
	server_free(a->server);
	uisource_free(a->ui);
	go_profile_http_free(a->pull);
	go_profiler_free(a->heap);
	cpu_profiler_free(a->cpu);
	debuginfod_unref(a->debuginfod);
	export_free(a->export);
	naming_free(a->naming);
	config_deinit(&a->reloaded);
	discovery_free(a->discovery);
	process_metrics_free(a->process);
	metric_list_deinit(&a->metrics);
	loop_free(a->loop);
	root_deinit(&a->proc);
	root_deinit(&a->sys);
	free(a);
}

int agent_run(struct agent *a)
{
	uint64_t window = a->config->window_ns;
	uint64_t first = window < AGENT_FIRST_WINDOW_NS ? window : AGENT_FIRST_WINDOW_NS;
	int r;

	a->window_began_ns = nsec_boot();
	r = loop_arm(a->window, first, window);
	if (r)
		return start_failed(r, "cannot set the window's timer", NULL);
	if (a->heap)
		go_profiler_begin(a->heap, nsec_wall(), AGENT_BASELINE_NS);
	log_info("profiling this node", log_str("page", a->url));
	slice_ask_short(); /* the answers of health, and stacks, wait for this thread */
	return loop_run(a->loop);
}
