// SPDX-License-Identifier: Apache-2.0
/*
 * The cgroup path identifies a container, because every runtime sets it before the first process
 * runs. No standard defines these paths. A path has up to four parts:
 *
 *	prefix   the site's (kubelet --cgroup-root) or an outer container's, when nodes are
 *	         containers themselves (kind, minikube)
 *	kubepods the kubelet's root, then a QoS class unless the pod is Guaranteed:
 *	         /kubepods/burstable, or /kubepods.slice/kubepods-burstable.slice with systemd
 *	pod      pod<UID>, with systemd <parent>-pod<UID with _ for ->.slice
 *	scope    the runtime's: <id>, <prefix>-<id>.scope, <slice>:<prefix>:<id>, ...
 *	         followed by directories that the container makes below its own cgroup
 *
 * Any part may be missing: if the agent has its own cgroup namespace, the kernel cuts the front of
 * a path and writes "/../.." instead.
 *
 * The parser reads the path once from the front, and deeper components replace earlier findings.
 * So with containers in containers the innermost is the result, and directories below a scope
 * belong to the scope, whatever their names. The container chooses these names, and must neither
 * hide in a directory with a monitor's name nor pass for a service of the node. It also chooses
 * every id inside of its own, so the container around a nested one is the outermost, or the user.
 * An id must be exactly 64 hexadecimal digits in a known form, because the names of mount units,
 * layers and tasks contain longer and shorter runs of digits.
 *
 * A path without a scope may still lead into a pod. The processes of gVisor, a single kernel for
 * all of a pod's containers, are in the pod's own directory. So are threads of Kata's virtual
 * machines.
 *
 * Some distinctions are not in the path: sandboxes look like containers in most runtimes, and with
 * the cgroupfs driver docker and containerd look the same.
 *
 * Sources: the kubelet's pod_container_manager_linux.go and cgroup_manager_linux.go for the pod
 * part; the runtimes' own code for the scopes; test/data/cgroup/README.md for the collected paths.
 */
#include "discovery/cgroup.h"

#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strview.h"
#include "discovery/cgroup_line.h"
#include "discovery/unit.h"

/* ---- the container's part */

/*
 * The runtime chooses the last part of a container's cgroup path. This section lists the forms in
 * use and their marks. All forms are anchored at both ends: "foo-<id>.scope" of a host unit, a
 * layer's name in a mount unit or a UUID in a terminal's scope must not look like a container.
 *
 * Not recognised: names made by ctr (/default/<name>) and BuildKit's ids, without a fixed form.
 * Their processes count as the host's.
 *
 * Sources: containerd internal/cri/server/podsandbox, CRI-O internal/config/cgmgr, moby
 * daemon/oci_linux.go, runc docs/systemd.md, podman's and LXC's manuals, Kata docs/design, Nomad's
 * cgroup notes.
 */

/**
 * struct cgroup_scope - one component of a cgroup path, parsed
 * @kind:    CGROUP_KIND_NONE for a container's monitor process (conmon)
 * @id:      the container's id; borrows from the component; empty for a monitor
 * @escaped: @id uses systemd's \xHH escapes
 */
struct cgroup_scope {
	enum cgroup_runtime runtime;
	enum cgroup_kind kind;
	struct strview id;
	bool escaped;
};

#define HEX_ID_LEN 64

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* True if the text has @form: 'h' stands for a hexadecimal digit, every other character
 * for itself. */
static bool has_form(struct strview t, const char *form)
{
	size_t n = strlen(form);

	if (strview_len(&t) != n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (form[i] == 'h' ? !is_hex(t.p[i]) : t.p[i] != form[i])
			return false;
	return true;
}

static bool is_hex_id(struct strview t)
{
	if (strview_len(&t) != HEX_ID_LEN)
		return false;
	for (const char *p = t.p; p < t.end; p++)
		if (!is_hex(*p))
			return false;
	return true;
}

/* True for a presentable name: no blank, no control character, not too long. */
static bool is_name(struct strview t)
{
	if (strview_empty(&t) || strview_len(&t) >= CGROUP_ID_MAX)
		return false;
	for (const char *p = t.p; p < t.end; p++)
		if (*p <= ' ' || *p > '~')
			return false;
	return true;
}

static const struct cgroup_scope monitor = {0};

struct prefix {
	const char *name;
	enum cgroup_runtime runtime;
};

/* The prefix in "<prefix>-<id>" and in "<slice>:<prefix>:<id>". */
static const struct prefix prefixes[] = {
	{"cri-containerd", CGROUP_RUNTIME_CONTAINERD},
	{"crio", CGROUP_RUNTIME_CRIO},
	{"docker", CGROUP_RUNTIME_DOCKER},
	{"libpod", CGROUP_RUNTIME_PODMAN},
	{"libpod-payload", CGROUP_RUNTIME_PODMAN},
	{"nerdctl", CGROUP_RUNTIME_CONTAINERD},
	{"runc", CGROUP_RUNTIME_RUNC},
};

static bool prefix_find(struct strview name, enum cgroup_runtime *ret)
{
	for (size_t i = 0; i < array_size(prefixes); i++) {
		if (!strview_is(&name, prefixes[i].name))
			continue;
		*ret = prefixes[i].runtime;
		return true;
	}
	return false;
}

/* The runtime of a bare id, if the parent directory has a known name. */
static enum cgroup_runtime runtime_of_parent(struct strview parent)
{
	if (strview_is(&parent, "docker"))
		return CGROUP_RUNTIME_DOCKER;
	if (strview_is(&parent, "k8s.io")) /* containerd's namespace for the kubelet */
		return CGROUP_RUNTIME_CONTAINERD;
	if (strview_is(&parent, "lxc"))
		return CGROUP_RUNTIME_LXC;
	return CGROUP_RUNTIME_UNKNOWN;
}

/* Monitor processes, in a directory beside their container's. */
static bool scope_monitor(struct strview name, struct strview parent, struct cgroup_scope *ret)
{
	if (!strview_starts(&name, "crio-conmon-") && !strview_starts(&name, "libpod-conmon-") &&
	    !strview_is(&name, "conmon") && !strview_starts(&name, "lxc.monitor") &&
	    !strview_is(&parent, "lxc.monitor") &&
	    !(strview_is(&name, "supervisor") && strview_starts(&parent, "systemd-nspawn@")))
		return false;
	*ret = monitor;
	return true;
}

/* <slice>:<prefix>:<id>: runc was told to use systemd, but made the directory itself. */
static bool scope_colon(struct strview name, struct cgroup_scope *ret)
{
	struct strview slice, prefix;
	struct cgroup_scope scope = {.kind = CGROUP_KIND_CONTAINER};

	if (!strview_until(&name, ':', &slice) || !strview_until(&name, ':', &prefix))
		return false;
	if (!prefix_find(prefix, &scope.runtime) || !is_hex_id(name))
		return false;
	scope.id = name;
	*ret = scope;
	return true;
}

/* <id>, <prefix>-<id>[.scope], kata_<id>. */
static bool scope_hex(struct strview name, struct strview parent, struct cgroup_scope *ret)
{
	struct cgroup_scope scope = {.kind = CGROUP_KIND_CONTAINER};
	bool is_scope = strview_suffix(&name, ".scope");
	struct strview head;

	if (!strview_tail(name, HEX_ID_LEN, &head, &scope.id) || !is_hex_id(scope.id))
		return false;
	/* a Podman pod: it contains only its containers' directories */
	if (strview_empty(&head) && strview_is(&parent, "libpod_parent"))
		return false;
	if (strview_is(&head, "kata_") ||
	    (strview_empty(&head) && strview_is(&parent, "kata_overhead"))) {
		scope.runtime = CGROUP_RUNTIME_KATA;
		scope.kind = CGROUP_KIND_SANDBOX;
	} else if (strview_empty(&head)) {
		scope.runtime = runtime_of_parent(parent);
	} else if (!strview_suffix(&head, "-") || !prefix_find(head, &scope.runtime)) {
		return false;
	}
	/* Under systemd, CRI-O makes a scope for each container, and a plain directory for a
	 * sandbox without infra container. */
	if (scope.runtime == CGROUP_RUNTIME_CRIO && !is_scope && strview_suffix(&parent, ".slice"))
		scope.kind = CGROUP_KIND_SANDBOX;
	*ret = scope;
	return true;
}

/* <32 digits>-<number>, a task of ECS on Fargate. */
static bool scope_ecs(struct strview name, struct cgroup_scope *ret)
{
	struct cgroup_scope scope = {
		.runtime = CGROUP_RUNTIME_ECS, .kind = CGROUP_KIND_CONTAINER, .id = name};
	struct strview task;
	uint64_t number;

	if (!strview_until(&name, '-', &task) || strview_len(&task) != 32)
		return false;
	for (const char *p = task.p; p < task.end; p++)
		if (!is_hex(*p))
			return false;
	if (!strview_only_u64(name, 10, &number) || !is_name(scope.id))
		return false;
	*ret = scope;
	return true;
}

static bool scope_garden(struct strview name, struct cgroup_scope *ret)
{
	if (!has_form(name, "hhhhhhhh-hhhh-hhhh-hhhh-hhhh"))
		return false;
	*ret = (struct cgroup_scope){
		.runtime = CGROUP_RUNTIME_GARDEN, .kind = CGROUP_KIND_CONTAINER, .id = name};
	return true;
}

/* <allocation's UUID>.<task>.scope; without the suffix if Nomad makes the directory itself. */
static bool scope_nomad(struct strview name, struct strview parent, struct cgroup_scope *ret)
{
	bool is_scope = strview_suffix(&name, ".scope");
	struct strview id;

	if (!is_scope && !strview_is(&parent, "nomad") && !strview_is(&parent, "share") &&
	    !strview_is(&parent, "reserve"))
		return false;
	if (!strview_until(&name, '.', &id) || strview_empty(&name) ||
	    !has_form(id, "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh"))
		return false;
	*ret = (struct cgroup_scope){
		.runtime = CGROUP_RUNTIME_NOMAD, .kind = CGROUP_KIND_CONTAINER, .id = id};
	return true;
}

static bool scope_lxc(struct strview name, struct strview parent, struct cgroup_scope *ret)
{
	if (!strview_is(&parent, "lxc") && !strview_is(&parent, "lxc.payload") &&
	    !strview_prefix(&name, "lxc.payload."))
		return false;
	if (!is_name(name))
		return false;
	*ret = (struct cgroup_scope){
		.runtime = CGROUP_RUNTIME_LXC, .kind = CGROUP_KIND_CONTAINER, .id = name};
	return true;
}

/* Machines of systemd-machined: containers of libvirt's lxc driver and of nspawn. Other drivers
 * make virtual machines, "machine-<driver>\x2d<number>\x2d<name>.scope". */
static bool scope_machine(struct strview name, struct strview parent, struct cgroup_scope *ret)
{
	static const char *const vms[] = {"qemu\\x2d", "ch\\x2d", "xen\\x2d", "bhyve\\x2d"};
	struct cgroup_scope scope = {
		.runtime = CGROUP_RUNTIME_NSPAWN, .kind = CGROUP_KIND_CONTAINER, .escaped = true};

	if (!strview_is(&parent, "machine.slice"))
		return false;
	if (!strview_suffix(&name, ".service") && !strview_suffix(&name, ".scope"))
		return false;
	if (!strview_prefix(&name, "machine-") && !strview_prefix(&name, "systemd-nspawn@"))
		return false;
	for (size_t i = 0; i < array_size(vms); i++)
		if (strview_starts(&name, vms[i]))
			return false;
	if (strview_prefix(&name, "lxc\\x2d"))
		scope.runtime = CGROUP_RUNTIME_LXC;
	if (!is_name(name))
		return false;
	scope.id = name;
	*ret = scope;
	return true;
}

/* True if the directory @name in the directory @parent belongs to a container or a monitor. */
static bool cgroup_scope_parse(struct strview name, struct strview parent, struct cgroup_scope *ret)
{
	return scope_monitor(name, parent, ret) || scope_colon(name, ret) ||
	       scope_hex(name, parent, ret) || scope_ecs(name, ret) || scope_garden(name, ret) ||
	       scope_nomad(name, parent, ret) || scope_lxc(name, parent, ret) ||
	       scope_machine(name, parent, ret);
}

#define UUID_LEN       36
#define STATIC_UID_LEN 32

const char *cgroup_runtime_name(enum cgroup_runtime runtime)
{
	static const char *const names[CGROUP_RUNTIME_MAX] = {
		[CGROUP_RUNTIME_NONE] = "none",
		[CGROUP_RUNTIME_UNKNOWN] = "unknown",
		[CGROUP_RUNTIME_CONTAINERD] = "containerd",
		[CGROUP_RUNTIME_CRIO] = "crio",
		[CGROUP_RUNTIME_DOCKER] = "docker",
		[CGROUP_RUNTIME_PODMAN] = "podman",
		[CGROUP_RUNTIME_RUNC] = "runc",
		[CGROUP_RUNTIME_KATA] = "kata",
		[CGROUP_RUNTIME_LXC] = "lxc",
		[CGROUP_RUNTIME_NSPAWN] = "nspawn",
		[CGROUP_RUNTIME_ECS] = "ecs",
		[CGROUP_RUNTIME_GARDEN] = "garden",
		[CGROUP_RUNTIME_NOMAD] = "nomad",
	};

	return runtime < CGROUP_RUNTIME_MAX ? names[runtime] : "unknown";
}

const char *cgroup_qos_name(enum cgroup_qos qos)
{
	static const char *const names[CGROUP_QOS_MAX] = {
		[CGROUP_QOS_BESTEFFORT] = "besteffort",
		[CGROUP_QOS_BURSTABLE] = "burstable",
		[CGROUP_QOS_GUARANTEED] = "guaranteed",
	};

	return qos < CGROUP_QOS_MAX ? names[qos] : NULL;
}

const char *cgroup_kind_name(enum cgroup_kind kind)
{
	static const char *const names[CGROUP_KIND_MAX] = {
		[CGROUP_KIND_NONE] = "none",
		[CGROUP_KIND_CONTAINER] = "container",
		[CGROUP_KIND_SANDBOX] = "sandbox",
		[CGROUP_KIND_POD] = "pod",
	};

	return kind < CGROUP_KIND_MAX ? names[kind] : "none";
}

/* @t without @suffix at the end. */
static struct strview without(struct strview t, const char *suffix)
{
	if (!strview_suffix(&t, suffix))
		return t;
	return t;
}

/* ---- the kubelet's components ---- */

/* A pod's UUID, with the dashes of the kubelet or the underscores for systemd. */
static bool is_pod_uuid(struct strview t)
{
	if (strview_len(&t) != UUID_LEN)
		return false;
	for (size_t i = 0; i < UUID_LEN; i++) {
		bool sep = i == 8 || i == 13 || i == 18 || i == 23;

		if (sep ? t.p[i] != '-' && t.p[i] != '_' : !is_hex(t.p[i]))
			return false;
	}
	return true;
}

/* The UID of a static pod is an MD5 sum. */
static bool is_static_uid(struct strview t)
{
	if (strview_len(&t) != STATIC_UID_LEN)
		return false;
	for (const char *p = t.p; p < t.end; p++)
		if (!is_hex(*p))
			return false;
	return true;
}

/* The kubelet's part of a component: without runc's colons and systemd's suffix. */
static struct strview kubelet_name(struct strview component)
{
	const char *colon = memchr(component.p, ':', strview_len(&component));

	if (colon)
		component.end = colon;
	return without(component, ".slice");
}

/* [<parent>-]pod<UID> */
static bool kubelet_pod(struct strview name, struct strview *ret_uid)
{
	struct strview head, uid;

	if (!(strview_tail(name, UUID_LEN, &head, &uid) && is_pod_uuid(uid)) &&
	    !(strview_tail(name, STATIC_UID_LEN, &head, &uid) && is_static_uid(uid)))
		return false;
	if (!strview_suffix(&head, "pod"))
		return false;
	if (!strview_empty(&head) && head.end[-1] != '-')
		return false;
	*ret_uid = uid;
	return true;
}

static enum cgroup_qos qos_of(struct strview word)
{
	if (strview_is(&word, "besteffort"))
		return CGROUP_QOS_BESTEFFORT;
	if (strview_is(&word, "burstable"))
		return CGROUP_QOS_BURSTABLE;
	return CGROUP_QOS_UNKNOWN;
}

/**
 * struct kubelet_words - meaning of the dashed words of a component
 * @kubepods: a word is "kubepods"
 * @last:     the last word is "kubepods", so the next component may be a QoS class
 * @qos:      the class after "kubepods", or before "pod<UID>" on a site with another name for
 *            kubepods
 */
struct kubelet_words {
	bool kubepods;
	bool last;
	enum cgroup_qos qos;
};

static struct kubelet_words kubelet_words(struct strview name)
{
	struct kubelet_words words = {0};
	enum cgroup_qos qos = CGROUP_QOS_UNKNOWN, qos_before;
	struct strview word;

	while (strview_until(&name, '-', &word)) {
		qos_before = qos;
		qos = qos_of(word);
		if (words.last && qos)
			words.qos = qos;
		if (qos_before && strview_starts(&word, "pod"))
			words.qos = qos_before;
		words.last = strview_is(&word, "kubepods");
		words.kubepods |= words.last;
	}
	return words;
}

/* ---- a path ---- */

/* Findings so far; positions count components from 1. */
struct walk {
	struct strview parent;
	size_t at;
	struct cgroup_scope scope;
	size_t scope_at; /* 0: none yet */
	struct strview outer_id;
	bool outer_escaped;
	struct strview service;	      /* since the last scope; no user's manager */
	struct strview scope_service; /* up to the scope */
	struct strview uid;
	size_t uid_at;
	bool kubepods;
	bool qos_may_follow;
	enum cgroup_qos qos;
	bool mount;
};

static void walk_kubelet(struct walk *w, struct strview component)
{
	struct strview name = kubelet_name(component), uid;
	struct kubelet_words words = kubelet_words(name);
	enum cgroup_qos alone = qos_of(name);

	if (words.kubepods) {
		/* of two kubepods, the inner one has the pod's class */
		w->kubepods = true;
		w->qos = CGROUP_QOS_UNKNOWN;
	}
	if (words.qos)
		w->qos = words.qos;
	else if (alone && w->qos_may_follow)
		w->qos = alone;
	w->qos_may_follow = words.last;
	if (kubelet_pod(name, &uid)) {
		w->uid = uid;
		w->uid_at = w->at;
	}
}

static bool same_id(const struct cgroup_scope *a, const struct cgroup_scope *b)
{
	return a->runtime == b->runtime && a->escaped == b->escaped &&
	       strview_len(&a->id) == strview_len(&b->id) &&
	       memcmp(a->id.p, b->id.p, strview_len(&a->id)) == 0;
}

static bool in_container(const struct walk *w)
{
	return w->scope_at && w->scope.kind;
}

/* True for a monitor beside the payload of the node's container whose directory @w has just passed:
 * LXC's in /lxc/NAME, but not below /lxc.payload.NAME, and nspawn's. */
static bool is_own_monitor(const struct walk *w, struct strview component)
{
	if (w->at != w->scope_at + 1 || !strview_empty(&w->outer_id))
		return false;
	if (w->scope.runtime == CGROUP_RUNTIME_LXC)
		return strview_starts(&component, "lxc.monitor") && w->scope.id.p == w->parent.p;
	return w->scope.runtime == CGROUP_RUNTIME_NSPAWN && strview_is(&component, "supervisor");
}

static void walk_component(struct walk *w, struct strview component)
{
	struct strview user;
	struct cgroup_scope scope;
	bool found;

	w->at++;
	if (!w->scope_at && unit_is_manager(component, &user))
		w->outer_id = component;
	else if (strview_suffix(&(struct strview){component.p, component.end}, ".service"))
		w->service = component;
	w->mount |= !in_container(w) &&
		    strview_suffix(&(struct strview){component.p, component.end}, ".mount");
	walk_kubelet(w, component);
	found = cgroup_scope_parse(component, w->parent, &scope);
	if (found && !scope.kind && in_container(w))
		found = is_own_monitor(w, component);
	if (found) {
		/* with lxc.cgroup.dir = lxc/NAME, LXC makes /lxc/NAME/lxc.payload.NAME */
		if (in_container(w) && strview_empty(&w->outer_id) && !same_id(&w->scope, &scope)) {
			w->outer_id = w->scope.id;
			w->outer_escaped = w->scope.escaped;
		}
		w->scope = scope;
		w->scope_at = w->at;
		w->scope_service = w->service;
		w->service = strview_of("");
	}
	w->parent = component;
}

/* Decodes "\xHH" at @p into a printable character. False if there is no such escape before @end. */
static bool unescape(const char *p, const char *end, char *ret)
{
	struct strview digits = {.p = p + 2, .end = p + 4};
	uint64_t c;

	if (end - p < 4 || p[0] != '\\' || p[1] != 'x')
		return false;
	if (!strview_only_u64(digits, 16, &c) || c <= ' ' || c > '~')
		return false;
	*ret = (char)c;
	return true;
}

static void copy_id(char ret[CGROUP_ID_MAX], struct strview id, bool escaped)
{
	size_t n = 0;
	char c;

	while (id.p < id.end && n < CGROUP_ID_MAX - 1) {
		if (escaped && unescape(id.p, id.end, &c)) {
			ret[n++] = c;
			id.p += 4;
		} else {
			ret[n++] = *id.p++;
		}
	}
	ret[n] = '\0';
}

static void copy_uid(char ret[CGROUP_UID_MAX], struct strview uid)
{
	size_t n = strview_len(&uid);

	memcpy(ret, uid.p, n);
	ret[n] = '\0';
	for (size_t i = 0; i < n; i++)
		if (ret[i] == '_')
			ret[i] = '-';
}

static void walk_finish(const struct walk *w, struct cgroup_id *ret)
{
	*ret = (struct cgroup_id){.qos = w->qos};
	if (w->uid_at) {
		copy_uid(ret->pod_uid, w->uid);
		if (!w->qos && w->kubepods)
			ret->qos = CGROUP_QOS_GUARANTEED;
	}
	if (w->mount)
		return;
	if (in_container(w) && w->uid_at <= w->scope_at) {
		ret->runtime = w->scope.runtime;
		ret->kind = w->scope.kind;
		copy_id(ret->container_id, w->scope.id, w->scope.escaped);
		copy_id(ret->outer_id, w->outer_id, w->outer_escaped);
		/* for other runtimes it is the service of the daemon, or of the user who ran the
		 * command */
		if (w->scope.runtime == CGROUP_RUNTIME_PODMAN &&
		    strview_len(&w->scope_service) < CGROUP_ID_MAX)
			copy_id(ret->service, w->scope_service, false);
	} else if (w->uid_at > w->scope_at) {
		ret->runtime = CGROUP_RUNTIME_UNKNOWN;
		ret->kind = CGROUP_KIND_POD;
		/* An id above a pod is the id of the node around the pod. */
		if (in_container(w) && strview_empty(&w->outer_id))
			copy_id(ret->outer_id, w->scope.id, w->scope.escaped);
		else
			copy_id(ret->outer_id, w->outer_id, w->outer_escaped);
	}
}

void cgroup_parse_path(struct strview path, struct cgroup_id *ret)
{
	struct walk w = {.parent = strview_of(""),
			 .outer_id = strview_of(""),
			 .service = strview_of(""),
			 .scope_service = strview_of("")};
	struct strview component;

	path = without(path, " (deleted)");
	while (strview_until(&path, '/', &component))
		if (!strview_empty(&component) && !strview_is(&component, ".."))
			walk_component(&w, component);
	walk_finish(&w, ret);
}

bool cgroup_user(const struct cgroup_id *id, struct strview *ret)
{
	return unit_is_manager(strview_of(id->outer_id), ret);
}

bool cgroup_is_inside(const struct cgroup_id *id, const struct cgroup_id *outer)
{
	return id->outer_id[0] && strcmp(id->outer_id, outer->container_id) == 0;
}

bool cgroup_id_is_name(const struct cgroup_id *id)
{
	return id->runtime == CGROUP_RUNTIME_LXC || id->runtime == CGROUP_RUNTIME_NSPAWN;
}

/* ---- /proc/PID/cgroup ---- */

/* On hybrid nodes some hierarchies have the pod and others only the runtime's service, differently
 * on each node. A daemon in a container may see only some hierarchies; in the others its containers
 * stay in its own cgroup. */
int cgroup_richness(const struct cgroup_id *id)
{
	if (id->container_id[0])
		return id->pod_uid[0] ? 4 : 3;
	if (id->pod_uid[0])
		return 2;
	return id->qos ? 1 : 0;
}

void cgroup_parse_proc(struct strview proc_cgroup, struct cgroup_id *ret)
{
	struct cgroup_id best = {0}, id;
	struct cgroup_line line;

	while (cgroup_line_next(&proc_cgroup, &line)) {
		cgroup_parse_path(line.path, &id);
		if (cgroup_richness(&id) > cgroup_richness(&best) || cgroup_is_inside(&id, &best))
			best = id;
	}
	*ret = best;
}

void cgroup_parse(struct strview t, struct cgroup_id *ret)
{
	struct strview rest = t, line = t, number;
	uint64_t hierarchy;

	if (!strview_line(&rest, &line)) {
		*ret = (struct cgroup_id){0};
		return;
	}
	rest = line;
	if (strview_until(&rest, ':', &number) && number.end < line.end &&
	    strview_only_u64(number, 10, &hierarchy))
		cgroup_parse_proc(t, ret);
	else
		cgroup_parse_path(line, ret);
}
