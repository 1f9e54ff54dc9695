// SPDX-License-Identifier: Apache-2.0
/* Synthetic probe results and their findings; nothing reads this machine. */
#include "support/test.h"

#include <errno.h>
#include <string.h>

#include "base/capability.h"
#include "base/http.h"
#include "base/root.h"
#include "config/config.h"
#include "discovery/hierarchy.h"
#include "doctor/doctor.h"
#include "export/coroot.h"
#include "export/file.h"
#include "export/pyroscope.h"
#include "server/listen.h"
#include "symbolize/ksyms.h"

#define BIT(capability) (1ull << (capability))
#define CHART                                                                               \
	(BIT(CAP_BPF) | BIT(CAP_PERFMON) | BIT(CAP_SYS_PTRACE) | BIT(CAP_DAC_READ_SEARCH) | \
	 BIT(CAP_CHECKPOINT_RESTORE) | BIT(CAP_SYSLOG))

static void good_config(struct config *c)
{
	*c = (struct config){
		.listen = (char *)"0.0.0.0:7070",
		.cpu_rate = 97,
		.kernel_stacks = true,
		.go_heap = CONFIG_GO_HEAP_ENABLED,
		.proc_root = (char *)"/proc",
		.cgroupfs_root = (char *)"/host/sys/fs/cgroup",
		.node_name = (char *)"n1",
	};
}

static struct source source(const char *name, enum metadata_state state, const char *word,
			    const char *url)
{
	struct source s = {.state = state};

	snprintf(s.name, sizeof(s.name), "%s", name);
	snprintf(s.word, sizeof(s.word), "%s", word);
	snprintf(s.url, sizeof(s.url), "%s", url);
	return s;
}

/* A pod of the chart's on a node where all is well. */
static void good_results(const struct config *c, struct probe_results *f)
{
	*f = (struct probe_results){
		.config = c,
		.in_cluster = true,
		.rights = {.known = true,
			   .capabilities = CHART,
			   .seccomp = true,
			   .label = "unconfined",
			   .yama = 1,
			   .open_files = 1048576,
			   .locked_bytes = 65536},
		.kernel = {.known = {.has_btf = true, .version = {.major = 6, .minor = 8}},
			   .paranoid = 2,
			   .tried = true,
			   .has_loop = true,
			   .load_ns = 30000000,
			   .n_cpus = 4},
		.node = {.view = {.ours = true},
			 .n_strangers = 10,
			 .has = {[HIERARCHY_V2] = true},
			 .real = {[HIERARCHY_V2] = true},
			 .top = {[HIERARCHY_V2] = true},
			 .n_dirs = 300,
			 .n_containers = 40},
		.reading = {.n = 64, .n_ksyms = 100000},
		.sources = {.n = 2, .n_containers = 40, .n_named = 39},
		.network = {.n = 1, .now_s = 1800000000},
		.storedir = {"/var/lib/podprof", true, 0, 1ull << 30, 256ull << 20, 0},
	};
	f->sources.items[0] = source("containerd", METADATA_WORKS, "ok", "");
	f->sources.items[1] = source("kubelet", METADATA_WORKS, "ok", "https://10.0.0.1:10250");
	f->network.items[0] = (struct reached){.kind = &destination_pyroscope,
					       .where = "pyroscope p:4040",
					       .done = true,
					       .status = 400,
					       .verdict = DESTINATION_REFUSED_PART,
					       .refused = true};
}

struct want {
	const char *check;
	enum finding_outcome outcome;
	const char *found;
	const char *remedy;
};

/* All findings that are not ok, in order. */
struct check_row {
	const char *name;
	void (*spoil)(struct probe_results *f, struct config *c);
	struct want wants[4];
};

static void nothing(struct probe_results *f, struct config *c)
{
	(void)f;
	(void)c;
}

/* ---------------------------------------------------------------- rights */

static void no_capabilities(struct probe_results *f, struct config *c)
{
	f->rights.capabilities = 0;
	f->reading.ksyms = KSYMS_HIDDEN;
	f->in_cluster = false;
	(void)c;
}

static void only_admin(struct probe_results *f, struct config *c)
{
	f->rights.capabilities &= ~(BIT(CAP_BPF) | BIT(CAP_PERFMON) | BIT(CAP_CHECKPOINT_RESTORE));
	f->rights.capabilities |= BIT(CAP_SYS_ADMIN);
	(void)c;
}

static void no_bpf_not_wanted(struct probe_results *f, struct config *c)
{
	f->rights.capabilities &= ~(BIT(CAP_BPF) | BIT(CAP_PERFMON) | BIT(CAP_SYSLOG));
	f->reading.ksyms = KSYMS_HIDDEN;
	f->kernel.tried = false;
	c->cpu_rate = 0;
}

static void no_restore(struct probe_results *f, struct config *c)
{
	f->rights.capabilities &= ~BIT(CAP_CHECKPOINT_RESTORE);
	(void)c;
}

static void no_syslog_but_shown(struct probe_results *f, struct config *c)
{
	f->rights.capabilities &= ~BIT(CAP_SYSLOG);
	(void)c;
}

static void rootless(struct probe_results *f, struct config *c)
{
	f->rights.in_namespace = true;
	(void)c;
}

static void old_kernel_memory(struct probe_results *f, struct config *c)
{
	f->kernel.known.version = (struct kernel_version){.major = 5, .minor = 10, .patch = 100};
	(void)c;
}

static void old_kernel_resource(struct probe_results *f, struct config *c)
{
	old_kernel_memory(f, c);
	f->rights.capabilities |= BIT(CAP_SYS_RESOURCE);
}

static void few_files(struct probe_results *f, struct config *c)
{
	f->rights.open_files = 1024;
	(void)c;
}

/* ---------------------------------------------------------------- the kernel */

static void very_old(struct probe_results *f, struct config *c)
{
	f->kernel.known.version = (struct kernel_version){.major = 4, .minor = 19, .patch = 0};
	f->rights.locked_bytes = UINT64_MAX;
	f->kernel.result = -EINVAL;
	snprintf(f->kernel.why.text, sizeof(f->kernel.why.text),
		 "loading the BPF programs failed (Invalid argument); Linux 4.19.0 is older ...");
	(void)c;
}

static void may_hang(struct probe_results *f, struct config *c)
{
	f->kernel.known.version = (struct kernel_version){.major = 6, .minor = 2, .patch = 16};
	f->kernel.tried = false;
	(void)c;
}

static void may_hang_allowed(struct probe_results *f, struct config *c)
{
	f->kernel.known.version = (struct kernel_version){.major = 6, .minor = 2, .patch = 16};
	c->allow_unsafe_kernel = true;
}

static void no_types(struct probe_results *f, struct config *c)
{
	f->kernel.known.has_btf = false;
	f->kernel.tried = false;
	(void)c;
}

static void locked_down(struct probe_results *f, struct config *c)
{
	f->kernel.known.confidentiality = true;
	f->kernel.tried = false;
	(void)c;
}

static void paranoid(struct probe_results *f, struct config *c)
{
	f->kernel.paranoid = 3;
	f->kernel.result = -EACCES;
	snprintf(f->kernel.why.text, sizeof(f->kernel.why.text),
		 "opening a clock event on each CPU failed (Permission denied); grant CAP_PERFMON");
	(void)c;
}

static void paranoid_admin(struct probe_results *f, struct config *c)
{
	f->kernel.paranoid = 4;
	f->rights.capabilities |= BIT(CAP_SYS_ADMIN);
	(void)c;
}

static void no_loop(struct probe_results *f, struct config *c)
{
	f->kernel.has_loop = false;
	(void)c;
}

static void realtime(struct probe_results *f, struct config *c)
{
	f->kernel.lacks_dumps = true;
	(void)c;
}

static void runtime_refused(struct probe_results *f, struct config *c)
{
	f->kernel.n_refused = 1;
	snprintf(f->kernel.runtime_why, sizeof(f->kernel.runtime_why), "x: R1 !read_ok");
	(void)c;
}

static void cpu_without_clock(struct probe_results *f, struct config *c)
{
	snprintf(f->kernel.cpu_why, sizeof(f->kernel.cpu_why), "No space left on device");
	(void)c;
}

static void seccomp_refuses(struct probe_results *f, struct config *c)
{
	f->kernel.result = -EPERM;
	f->kernel.events = -EPERM; /* is told once */
	snprintf(f->kernel.why.text, sizeof(f->kernel.why.text),
		 "loading the BPF programs failed (Operation not permitted); a seccomp profile "
		 "forbids bpf(2): allow it");
	(void)c;
}

static void no_events(struct probe_results *f, struct config *c)
{
	f->kernel.events = -EACCES;
	(void)c;
}

/* ---------------------------------------------------------------- the node */

static void no_proc(struct probe_results *f, struct config *c)
{
	f->no_proc = ROOT_GONE;
	(void)c;
}

static void hidden(struct probe_results *f, struct config *c)
{
	f->node.view.others = PROCVIEW_CLOSED;
	(void)c;
}

/* kind */
static void nested(struct probe_results *f, struct config *c)
{
	f->node.view.nested = true;
	f->node.top[HIERARCHY_V2] = false;
	(void)c;
}

static void no_host_pid(struct probe_results *f, struct config *c)
{
	f->node.view.nested = true;
	f->node.n_strangers = 0;
	(void)c;
}

static void others_numbers(struct probe_results *f, struct config *c)
{
	f->node.view.ours = false;
	(void)c;
}

static void no_procfs(struct probe_results *f, struct config *c)
{
	f->node.view.absent = true;
	f->node.view.others = PROCVIEW_HIDDEN;
	f->node.view.ours = false;
	(void)c;
}

static void no_cgroups(struct probe_results *f, struct config *c)
{
	f->node.cgroups = HIERARCHY_NO_SUCH_DIR;
	(void)c;
}

static void no_cgroup_mount(struct probe_results *f, struct config *c)
{
	f->node.cgroups = HIERARCHY_NO_CGROUPFS;
	c->cgroupfs_root = NULL;
}

static void no_cgroupfs(struct probe_results *f, struct config *c)
{
	f->node.real[HIERARCHY_V2] = false;
	(void)c;
}

static void part_of_cgroups(struct probe_results *f, struct config *c)
{
	f->node.top[HIERARCHY_V2] = false;
	f->node.n_containers = 0;
	(void)c;
}

static void hybrid(struct probe_results *f, struct config *c)
{
	f->node.has[HIERARCHY_V1] = f->node.real[HIERARCHY_V1] = f->node.top[HIERARCHY_V1] = true;
	f->node.top[HIERARCHY_V2] = false; /* is not the relevant one */
	f->node.controller = CONTROLLER_MEMORY;
	(void)c;
}

static void few_watches(struct probe_results *f, struct config *c)
{
	f->node.n_unwatched = 12;
	(void)c;
}

static void no_inotify(struct probe_results *f, struct config *c)
{
	f->node.no_inotify = true;
	(void)c;
}

/* ---------------------------------------------------------------- reading */

static void refuse(struct probe_results *f, size_t mappings, size_t files, size_t memory)
{
	f->reading.refused[READING_MAPPINGS] = mappings;
	f->reading.refused[READING_FILES] = files;
	f->reading.refused[READING_MEMORY] = memory;
	f->reading.example.pid = 1;
	snprintf(f->reading.example.comm, sizeof(f->reading.example.comm), "init");
}

static void apparmor(struct probe_results *f, struct config *c)
{
	refuse(f, 64, 64, 64);
	snprintf(f->rights.label, sizeof(f->rights.label), "cri-containerd.apparmor.d (enforce)");
	(void)c;
}

static void selinux(struct probe_results *f, struct config *c)
{
	refuse(f, 60, 60, 60);
	snprintf(f->rights.label, sizeof(f->rights.label), "system_u:system_r:container_t:s0:c1");
	f->rights.selinux = true;
	(void)c;
}

static void yama(struct probe_results *f, struct config *c)
{
	refuse(f, 0, 0, 64);
	f->rights.yama = 3;
	(void)c;
}

static void yama_no_heaps(struct probe_results *f, struct config *c)
{
	yama(f, c);
	c->go_heap = CONFIG_GO_HEAP_DISABLED;
}

static void closed_files(struct probe_results *f, struct config *c)
{
	refuse(f, 0, 2, 0);
	(void)c;
}

static void no_ksyms(struct probe_results *f, struct config *c)
{
	f->reading.ksyms = KSYMS_HIDDEN;
	(void)c;
}

static void no_ksyms_not_wanted(struct probe_results *f, struct config *c)
{
	f->reading.ksyms = KSYMS_HIDDEN;
	c->kernel_stacks = false;
}

/* ---------------------------------------------------------------- names */

static void kubelet_refuses(struct probe_results *f, struct config *c)
{
	f->sources.items[1] = source("kubelet", METADATA_REFUSES,
				     "HTTP status 403: Forbidden (user=u, verb=get, "
				     "resource=nodes, subresource=proxy)",
				     "https://10.0.0.1:10250");
	(void)c;
}

static void kubelet_refuses_other_does_not(struct probe_results *f, struct config *c)
{
	kubelet_refuses(f, c);
	f->sources.items[f->sources.n++] =
		source("apiserver", METADATA_WORKS, "ok", "https://10.96.0.1:443");
}

static void kubelet_away(struct probe_results *f, struct config *c)
{
	f->sources.items[1] =
		source("kubelet", METADATA_FAILS, "Connection timed out", "https://10.0.0.1:10250");
	c->metadata = CONFIG_METADATA_KUBELET;
}

static void kubelet_certificate(struct probe_results *f, struct config *c)
{
	f->sources.items[1] =
		source("kubelet", METADATA_FAILS,
		       "SSL certificate problem: unable to get local issuer certificate",
		       "https://10.0.0.1:10250");
	(void)c;
}

static void no_token(struct probe_results *f, struct config *c)
{
	f->sources.items[1] = source("apiserver", METADATA_REFUSES, "cannot read the token",
				     "https://10.96.0.1:443");
	(void)c;
}

static void no_runtime(struct probe_results *f, struct config *c)
{
	f->sources.items[0] = source("runtime", METADATA_REFUSES, "denied", "");
	(void)c;
}

static void no_runtime_alone(struct probe_results *f, struct config *c)
{
	no_runtime(f, c);
	f->sources.n = 1;
	f->sources.n_named = 0;
	c->metadata = CONFIG_METADATA_RUNTIME;
}

static void no_names(struct probe_results *f, struct config *c)
{
	f->sources.n_named = 0;
	(void)c;
}

static void no_names_wanted(struct probe_results *f, struct config *c)
{
	f->sources.n = f->sources.n_named = 0;
	c->metadata = CONFIG_METADATA_NONE;
}

static void no_address(struct probe_results *f, struct config *c)
{
	f->sources = (struct sources){.result = -EDESTADDRREQ};
	(void)c;
}

static void odd_node(struct probe_results *f, struct config *c)
{
	f->sources = (struct sources){.result = -EINVAL};
	c->node_name = (char *)"Node 1";
}

/* ---------------------------------------------------------------- network, the store, the
 * address */

static void answer(struct probe_results *f, long status, const char *why)
{
	struct reached *r = &f->network.items[0];

	r->status = status;
	r->verdict = r->kind->verdict(&(struct http_reply){.status = status, .body = ""});
	r->refused = false;
	snprintf(r->why, sizeof(r->why), "%s", why);
}

static void wants_credentials(struct probe_results *f, struct config *c)
{
	answer(f, 401, "no org id");
	(void)c;
}

static void wrong_path(struct probe_results *f, struct config *c)
{
	answer(f, 404, "no message");
	(void)c;
}

static void redirected(struct probe_results *f, struct config *c)
{
	answer(f, 301, "podprof does not follow redirects; give the target address");
	(void)c;
}

static void server_fails(struct probe_results *f, struct config *c)
{
	answer(f, 503, "no healthy upstream");
	(void)c;
}

static void other_server(struct probe_results *f, struct config *c)
{
	answer(f, 400, "what is this");
	(void)c;
}

static void no_host(struct probe_results *f, struct config *c)
{
	answer(f, 0, "Could not resolve host: p");
	(void)c;
}

static void no_tls(struct probe_results *f, struct config *c)
{
	answer(f, 0, "OpenSSL/3.0: error:0A00010B:SSL routines::wrong version number");
	(void)c;
}

static void coroot_key(struct probe_results *f, struct config *c)
{
	answer(f, 404, "404 page not found");
	f->network.items[0].kind = &destination_coroot;
	f->network.items[0].verdict = DESTINATION_DENIED;
	(void)c;
}

static void wrong_ca(struct probe_results *f, struct config *c)
{
	answer(f, 0, "SSL certificate problem: self-signed certificate");
	(void)c;
}

static void no_file(struct probe_results *f, struct config *c)
{
	answer(f, 0, "cannot read /run/key: No such file or directory");
	f->network.items[0].no_file = true;
	(void)c;
}

static void no_answer(struct probe_results *f, struct config *c)
{
	answer(f, 0, "");
	f->network.items[0].done = false;
	(void)c;
}

static void no_folder(struct probe_results *f, struct config *c)
{
	answer(f, 0, "Not a directory");
	f->network.items[0].kind = &destination_file;
	snprintf(f->network.items[0].where, sizeof(f->network.items[0].where), "file /out");
	(void)c;
}

static void wrong_spec(struct probe_results *f, struct config *c)
{
	answer(f, 0, "unknown destination kind 'x'; the kinds are: pyroscope");
	f->network.items[0].wrong = true;
	*f->network.items[0].where = '\0';
	(void)c;
}

static void behind(struct probe_results *f, struct config *c)
{
	f->network.items[0].ahead_s = 7200;
	(void)c;
}

static void a_little_ahead(struct probe_results *f, struct config *c)
{
	f->network.items[0].ahead_s = -300;
	(void)c;
}

static void ahead(struct probe_results *f, struct config *c)
{
	f->network.items[0].ahead_s = -301;
	(void)c;
}

static void never_set(struct probe_results *f, struct config *c)
{
	f->network.now_s = 86400;
	f->network.n = 0;
	(void)c;
}

static void read_only(struct probe_results *f, struct config *c)
{
	f->storedir.result = -EROFS;
	(void)c;
}

static void cannot_make(struct probe_results *f, struct config *c)
{
	f->storedir.result = -EACCES;
	f->storedir.there = false;
	(void)c;
}

static void spool_works(struct probe_results *f, struct config *c)
{
	f->spooldir =
		(struct storedir){"/var/spool/podprof", false, 0, 1ull << 30, 256ull << 20, 0};
	(void)c;
}

static void spool_read_only(struct probe_results *f, struct config *c)
{
	spool_works(f, c);
	f->spooldir.there = true;
	f->spooldir.result = -EROFS;
}

static void spool_full(struct probe_results *f, struct config *c)
{
	spool_works(f, c);
	f->spooldir.free_bytes = 10 << 20;
}

static void full(struct probe_results *f, struct config *c)
{
	f->storedir.free_bytes = 20 << 20;
	(void)c;
}

static void taken(struct probe_results *f, struct config *c)
{
	f->listener.result = -EADDRINUSE;
	(void)c;
}

static void taken_certs(struct probe_results *f, struct config *c)
{
	f->listener.result = -EADDRINUSE;
	f->listener.needs_cert = true;
	(void)c;
}

static void odd_address(struct probe_results *f, struct config *c)
{
	f->listener.plan = LISTEN_BAD;
	c->listen = (char *)"localhost";
}

static void odd_ui_address(struct probe_results *f, struct config *c)
{
	f->listener.plan = LISTEN_BAD_UI;
	c->ui_listen = (char *)"localhost";
}

static void bad_web(struct probe_results *f, struct config *c)
{
	c->web_config = (char *)"web.yml";
	f->listener.web = WEB_CONFIG_BAD;
	strcpy(f->listener.web_error, "web.yml: line 3: headers: not supported");
}

static void good_web(struct probe_results *f, struct config *c)
{
	c->web_config = (char *)"web.yml";
	(void)f;
}

static void ui_taken(struct probe_results *f, struct config *c)
{
	f->listener.ui_result = -EADDRINUSE;
	(void)c;
}

static void agent_runs(struct probe_results *f, struct config *c)
{
	taken(f, c);
	f->kernel.tried = false;
	assert_true(listener_read("ready\ncpu profiling: ok\nmetadata: ok, kubelet: ok\n",
				  &f->listener));
}

static void agent_fails(struct probe_results *f, struct config *c)
{
	taken(f, c);
	f->kernel.tried = false;
	assert_true(listener_read("not ready\nprocesses: ok, all\n"
				  "cpu profiling: failing, loading failed (Permission denied); "
				  "grant CAP_BPF\nmetadata: failing\nother: failing\n",
				  &f->listener));
}

static void agent_fails_silently(struct probe_results *f, struct config *c)
{
	taken(f, c);
	f->kernel.tried = false;
	assert_true(listener_read("not ready\n", &f->listener));
}

#define MISSING	 FINDING_MISSING
#define DEGRADED FINDING_DEGRADED

static const struct check_row check_rows[] = {
	{"all is well", nothing, {{0}}},
	{"no capabilities",
	 no_capabilities,
	 {{"CAP_BPF", MISSING, "", "run as root, or grant BPF PERFMON SYS_PTRACE DAC_READ"},
	  {"CAP_PERFMON", MISSING, "", "CHECKPOINT_RESTORE SYSLOG"},
	  {"CAP_SYS_PTRACE", MISSING, "", "grant BPF"},
	  {"CAP_DAC_READ_SEARCH", MISSING, "", "grant BPF"}}},
	{"CAP_SYS_ADMIN stands for three", only_admin, {{0}}},
	{"no BPF where it is not wanted", no_bpf_not_wanted, {{0}}},
	{"no CAP_CHECKPOINT_RESTORE",
	 no_restore,
	 {{"CAP_CHECKPOINT_RESTORE", DEGRADED, "", "as in the chart: CHECKPOINT_RESTORE"}}},
	{"no CAP_SYSLOG, and no need", no_syslog_but_shown, {{0}}},
	{"user namespace", rootless, {{"user namespace", MISSING, "", "hostUsers"}}},
	{"5.10 without memory",
	 old_kernel_memory,
	 {{"locked memory", MISSING, "65536 bytes", "CAP_SYS_RESOURCE"}}},
	{"5.10 with CAP_SYS_RESOURCE", old_kernel_resource, {{0}}},
	{"few open files", few_files, {{"open files", DEGRADED, "1024", "65536"}}},

	{"4.19",
	 very_old,
	 {{"kernel", MISSING, "Linux 4.19.0 is older than 5.10", "newer"},
	  {"CPU profiles", MISSING, "loading the BPF programs failed (Invalid argument)",
	   "Linux 4.19.0 is older"}}},
	{"6.2", may_hang, {{"kernel", MISSING, "could hang", "6.4"}}},
	{"6.2 allowed", may_hang_allowed, {{0}}},
	{"no BTF", no_types, {{"BTF", MISSING, "", "CONFIG_DEBUG_INFO_BTF"}}},
	{"lockdown", locked_down, {{"lockdown", MISSING, "", "lockdown=integrity"}}},
	{"paranoid",
	 paranoid,
	 {{"perf events", MISSING, "is 3", "perf_event_paranoid=2"},
	  {"CPU profiles", MISSING, "opening a clock", "grant CAP_PERFMON"}}},
	{"paranoid with CAP_SYS_ADMIN", paranoid_admin, {{0}}},
	{"no bpf_loop", no_loop, {{"CPU profiles", DEGRADED, "in parts", "nothing"}}},
	{"real time", realtime, {{"stack dumps", DEGRADED, "could sleep", "newer kernel"}}},
	{"a runtime's program",
	 runtime_refused,
	 {{"language runtimes", DEGRADED, "programs of 1; the verifier says: x: R1", "report"}}},
	{"a CPU without a clock",
	 cpu_without_clock,
	 {{"CPU profiles", DEGRADED, "No space left", ""}}},
	{"seccomp",
	 seccomp_refuses,
	 {{"CPU profiles", MISSING, "(Operation not permitted)", "a seccomp profile"}}},
	{"no sideband", no_events, {{"short-lived processes", DEGRADED, "denied", "PERFMON"}}},

	{"no /proc",
	 no_proc,
	 {{"processes", MISSING, "/proc: no such file or directory", "--proc-root"}}},
	{"no procfs", no_procfs, {{"processes", MISSING, "/proc is not a procfs", "--proc-root"}}},
	{"hidepid", hidden, {{"processes", MISSING, "hidepid", "CAP_SYS_PTRACE"}}},
	{"a node that is a container", nested, {{"processes", DEGRADED, "inside", "kind"}}},
	{"no hostPID",
	 no_host_pid,
	 {{"processes", MISSING, "/proc has only the processes", "hostPID: true"}}},
	{"another's /proc", others_numbers, {{"processes", DEGRADED, "another PID", "hostPID"}}},
	{"no cgroups",
	 no_cgroups,
	 {{"cgroups", MISSING, "/host/sys/fs/cgroup: no such", "--cgroupfs-root"}}},
	{"no cgroups mounted",
	 no_cgroup_mount,
	 {{"cgroups", MISSING, "/sys/fs/cgroup: no cgroup file", "--cgroupfs-root"}}},
	{"no cgroupfs", no_cgroupfs, {{"cgroups", MISSING, "is not a cgroup", "--cgroupfs-root"}}},
	{"the pod's own cgroups",
	 part_of_cgroups,
	 {{"cgroups", MISSING, "one container's part", "mount the host's"},
	  {"containers", MISSING, "none found", "--cgroupfs-root"}}},
	{"hybrid", hybrid, {{0}}},
	{"few watches", few_watches, {{"inotify", DEGRADED, "12 of 300", "max_user_watches"}}},
	{"no inotify", no_inotify, {{"inotify", DEGRADED, "", "max_user_instances"}}},

	{"AppArmor",
	 apparmor,
	 {{"reading processes", MISSING, "cannot read the mappings of 64 of 64 processes, 1 init",
	   "appArmorProfile"}}},
	{"SELinux", selinux, {{"reading processes", DEGRADED, "60 of 64", "spc_t"}}},
	{"Yama", yama, {{"reading processes", MISSING, "the memory", "ptrace_scope is 3"}}},
	{"Yama, and no heaps", yama_no_heaps, {{0}}},
	{"some files",
	 closed_files,
	 {{"reading processes", DEGRADED, "the programs of 2 of 64", "security module"}}},
	{"kptr_restrict 2", no_ksyms, {{"kernel symbols", MISSING, "hidden", "kptr_restrict"}}},
	{"no kernel stacks", no_ksyms_not_wanted, {{0}}},

	{"kubelet refuses",
	 kubelet_refuses,
	 {{"names of pods", MISSING, "kubelet https://10.0.0.1:10250: HTTP status 403",
	   "nodes/pods"}}},
	{"kubelet refuses, API server does not",
	 kubelet_refuses_other_does_not,
	 {{"names of pods", DEGRADED, "kubelet", "metadata.nodesProxy"}}},
	{"kubelet away",
	 kubelet_away,
	 {{"names of pods", MISSING, "timed out", "--kubelet-url or $HOST_IP"}}},
	{"kubelet's certificate",
	 kubelet_certificate,
	 {{"names of pods", MISSING, "issuer", "--kubelet-verify"}}},
	{"no token",
	 no_token,
	 {{"names of pods", MISSING, "apiserver", "automountServiceAccountToken"}}},
	{"no runtime's files",
	 no_runtime,
	 {{"names of pods", DEGRADED, "runtimes' files: denied", "reading processes"}}},
	{"no runtime's files, and nobody else",
	 no_runtime_alone,
	 {{"names of pods", MISSING, "runtimes' files: denied", "hostPID"}}},
	{"nobody has the names",
	 no_names,
	 {{"named containers", DEGRADED, "none of 40", "nothing, if another"}}},
	{"no names wanted", no_names_wanted, {{0}}},
	{"no address", no_address, {{"names of pods", MISSING, "unknown address", "$HOST_IP"}}},
	{"odd node", odd_node, {{"names of pods", MISSING, "Node 1", "kubectl get nodes"}}},

	{"credentials",
	 wants_credentials,
	 {{"destination", MISSING, "pyroscope p:4040: HTTP status 401: no org id", "tenant"}}},
	{"path", wrong_path, {{"destination", MISSING, "404", "base address"}}},
	{"redirect", redirected, {{"destination", MISSING, "301", "target address"}}},
	{"503", server_fails, {{"destination", MISSING, "no healthy upstream", "server's own"}}},
	{"not Pyroscope", other_server, {{"destination", MISSING, "what is this", "Pyroscope"}}},
	{"no host", no_host, {{"destination", MISSING, "not resolve", "check the address"}}},
	{"no TLS", no_tls, {{"destination", MISSING, "wrong version", "write http://"}}},
	{"Coroot's key", coroot_key, {{"destination", MISSING, "404", "API key"}}},
	{"CA", wrong_ca, {{"destination", MISSING, "self-signed", "ca-file"}}},
	{"no file",
	 no_file,
	 {{"destination", MISSING, "cannot read /run/key", "mount the secret"}}},
	{"no answer", no_answer, {{"destination", MISSING, "no answer in time", ""}}},
	{"folder",
	 no_folder,
	 {{"destination", MISSING, "file /out: Not a directory", "may write to"}}},
	{"wrong", wrong_spec, {{"destination", MISSING, "kind 'x'", "--help"}}},
	{"behind", behind, {{"clock", MISSING, "7200 s behind", "chrony"}}},
	{"a little ahead", a_little_ahead, {{0}}},
	{"ahead", ahead, {{"clock", MISSING, "301 s ahead", "chrony"}}},
	{"never set", never_set, {{"clock", MISSING, "never set", "chrony"}}},

	{"read-only store", read_only, {{"store", MISSING, "Read-only", "--store-dir"}}},
	{"no store", cannot_make, {{"store", MISSING, "denied", "--store-dir"}}},
	{"full", full, {{"store", DEGRADED, "20 MiB free, of 256", "make room"}}},
	{"read-only spool", spool_read_only, {{"spool", MISSING, "Read-only", "--spool-dir"}}},
	{"full spool", spool_full, {{"spool", DEGRADED, "10 MiB free, of 256", "make room"}}},
	{"address taken", taken, {{"listen", MISSING, "in use", "another program uses the port"}}},
	{"no address to listen on", odd_address, {{"listen", MISSING, "localhost", "127.0.0.1"}}},
	{"no address for the page",
	 odd_ui_address,
	 {{"listen", MISSING, "--ui-listen localhost is not", "127.0.0.1"}}},
	{"the page's address taken",
	 ui_taken,
	 {{"listen", MISSING, "--ui-listen (127.0.0.1, the next port): Address already in use",
	   "another program uses the port"}}},
	{"a web configuration with an error",
	 bad_web,
	 {{"web-config", MISSING, "headers: not supported", "--web-config"}}},
	{"a good web configuration", good_web, {{0}}},
	{"address taken, perhaps by an agent that cannot be asked", taken_certs, {{0}}},
	{"an agent runs", agent_runs, {{0}}},
	{"an agent runs, and fails",
	 agent_fails,
	 {{"agent", MISSING, "cpu profiling: loading failed (Permission denied)", "grant CAP_BPF"},
	  {"agent", MISSING, "other: ", "see its log"}}},
	{"an agent runs, fails, and has users",
	 agent_fails_silently,
	 {{"agent", MISSING, "not ready", "see its log"}}},
};

static void assert_has(const char *is, const char *want)
{
	if (!strstr(is, want))
		fail_msg("'%s' is not in: %s", want, is);
}

static void compare(const struct finding *is, const struct want *want)
{
	assert_string_equal(is->check, want->check);
	assert_int_equal(is->outcome, want->outcome);
	assert_has(is->found, want->found);
	assert_has(is->remedy, want->remedy);
	assert_true(*is->means);
	assert_true(*is->remedy);
}

static void checks(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(check_rows); i++) {
		const struct check_row *row = &check_rows[i];
		struct findings findings;
		struct config config;
		struct probe_results results;
		size_t n = 0;

		row_begin(row->name);
		good_config(&config);
		good_results(&config, &results);
		row->spoil(&results, &config);
		doctor_check(&results, &findings);
		for (size_t j = 0; j < findings.n; j++) {
			if (findings.items[j].outcome == FINDING_OK) {
				assert_false(*findings.items[j].remedy);
				continue;
			}
			if (n < array_size(row->wants) && row->wants[n].check)
				compare(&findings.items[j], &row->wants[n]);
			else if (n < array_size(row->wants))
				fail_msg("%s: %s", findings.items[j].check,
					 findings.items[j].found);
			n++;
		}
		assert_true(n >= array_size(row->wants) || !row->wants[n].check);
	}
}

/* Capabilities that imply several others. */
static void capabilities(void **state)
{
	struct findings findings;
	struct config config;
	struct probe_results results;

	(void)state;
	good_config(&config);
	good_results(&config, &results);
	no_capabilities(&results, &config);
	doctor_check(&results, &findings);
	assert_int_equal(findings_count(&findings, FINDING_MISSING), 5);
	assert_int_equal(findings_count(&findings, FINDING_DEGRADED), 1);
	assert_string_equal(findings.items[5].check, "CAP_SYSLOG");
	for (size_t i = 0; i < findings.n; i++)
		assert_string_not_equal(findings.items[i].check, "kernel symbols"); /* told once */
}

#ifdef __x86_64__
/* The finding says whether the kernel's addresses are those of its file. */
static void kernel_moved(void **state)
{
	static const struct {
		uint64_t text_start;
		const char *found;
	} moved_rows[] = {
		{0, "100000"},
		{0xffffffff81000000, "100000, at their link addresses (no KASLR)"},
		{0xffffffff9a200000, "100000, moved by KASLR"},
	};

	(void)state;
	for (size_t i = 0; i < array_size(moved_rows); i++) {
		const struct finding *finding = NULL;
		struct findings findings;
		struct config config;
		struct probe_results results;

		good_config(&config);
		good_results(&config, &results);
		results.reading.text_start = moved_rows[i].text_start;
		doctor_check(&results, &findings);
		for (size_t j = 0; j < findings.n; j++)
			if (strcmp(findings.items[j].check, "kernel symbols") == 0)
				finding = &findings.items[j];
		assert_non_null(finding);
		assert_string_equal(finding->found, moved_rows[i].found);
	}
}
#endif

static void full_of_findings(void **state)
{
	struct findings findings = {.n = 0};
	char text[2 * FINDING_TEXT_MAX];

	(void)state;
	memset(text, 'x', sizeof(text));
	text[0] = '\n';
	text[sizeof(text) - 1] = '\0';
	for (size_t i = 0; i < FINDINGS_MAX + 3; i++)
		finding_say(findings_add(&findings, "c", FINDING_OK, "%s", text), text, text);
	assert_int_equal(findings.n, FINDINGS_MAX);
	assert_int_equal(strlen(findings.items[0].means), FINDING_TEXT_MAX - 1);
	assert_int_equal(findings.items[0].found[0], '?');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checks),
		cmocka_unit_test(capabilities),
#ifdef __x86_64__
		cmocka_unit_test(kernel_moved),
#endif
		cmocka_unit_test(full_of_findings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
