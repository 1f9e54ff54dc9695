// SPDX-License-Identifier: Apache-2.0
/*
 * The runtime chooses the last part of a container's cgroup path. This file lists the forms in use
 * and their marks. All forms are anchored at both ends: "foo-<id>.scope" of a host unit, a layer's
 * name in a mount unit or a UUID in a terminal's scope must not look like a container.
 *
 * Not recognised: names made by ctr (/default/<name>) and BuildKit's ids, without a fixed form.
 * Their processes count as the host's.
 *
 * Sources: containerd internal/cri/server/podsandbox, CRI-O internal/config/cgmgr, moby
 * daemon/oci_linux.go, runc docs/systemd.md, podman's and LXC's manuals, Kata docs/design, Nomad's
 * cgroup notes.
 */
#include "discovery/cgroup_scope.h"

#include <string.h>

#include "base/cleanup.h"

#define HEX_ID_LEN 64

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
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

bool cgroup_scope_parse(struct strview name, struct strview parent, struct cgroup_scope *ret)
{
	return scope_monitor(name, parent, ret) || scope_colon(name, ret) ||
	       scope_hex(name, parent, ret) || scope_ecs(name, ret) || scope_garden(name, ret) ||
	       scope_nomad(name, parent, ret) || scope_lxc(name, parent, ret) ||
	       scope_machine(name, parent, ret);
}
