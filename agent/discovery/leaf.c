// SPDX-License-Identifier: Apache-2.0
/*
 * The last part of a container's cgroup path is the runtime's to choose; this is the list of the
 * forms in use, each with what sets it apart. All are anchored at both ends: "foo-<id>.scope" of a
 * host unit, a layer's name in a mount unit or a UUID in a terminal's scope must not look like a
 * container.
 *
 * Left out: names made by ctr (/default/<name>) and BuildKit's ids, which have no form at all; what
 * they name counts as the host's.
 *
 * Sources: containerd internal/cri/server/podsandbox, CRI-O internal/config/cgmgr, moby
 * daemon/oci_linux.go, runc docs/systemd.md, podman's and LXC's manuals, Kata docs/design, Nomad's
 * cgroup notes.
 */
#include "discovery/leaf.h"

#include <string.h>

#include "base/cleanup.h"

#define HEX_ID_LEN 64

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_lower_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f');
}

/* Whether the text has @form, where 'h' stands for a hexadecimal digit, lower case, and every other
 * character for itself. */
static bool has_form(struct text t, const char *form)
{
	size_t n = strlen(form);

	if (text_len(&t) != n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (form[i] == 'h' ? !is_lower_hex(t.p[i]) : t.p[i] != form[i])
			return false;
	return true;
}

static bool is_hex_id(struct text t)
{
	if (text_len(&t) != HEX_ID_LEN)
		return false;
	for (const char *p = t.p; p < t.end; p++)
		if (!is_lower_hex(*p))
			return false;
	return true;
}

/* A name that is good enough to be shown: no blank, no control character, not too long. */
static bool is_name(struct text t)
{
	if (text_empty(&t) || text_len(&t) >= CGROUP_ID_MAX)
		return false;
	for (const char *p = t.p; p < t.end; p++)
		if (*p <= ' ' || *p > '~')
			return false;
	return true;
}

static const struct leaf monitor = {0};

struct prefix {
	const char *name;
	enum cgroup_runtime runtime;
};

/* Before "-<id>" and between the colons of "<slice>:<prefix>:<id>". */
static const struct prefix prefixes[] = {
	{"cri-containerd", CGROUP_RUNTIME_CONTAINERD},
	{"crio", CGROUP_RUNTIME_CRIO},
	{"docker", CGROUP_RUNTIME_DOCKER},
	{"libpod", CGROUP_RUNTIME_PODMAN},
	{"libpod-payload", CGROUP_RUNTIME_PODMAN},
	{"nerdctl", CGROUP_RUNTIME_CONTAINERD},
	{"runc", CGROUP_RUNTIME_RUNC},
};

static bool prefix_find(struct text name, enum cgroup_runtime *ret)
{
	for (size_t i = 0; i < array_size(prefixes); i++) {
		if (!text_is(&name, prefixes[i].name))
			continue;
		*ret = prefixes[i].runtime;
		return true;
	}
	return false;
}

/* A bare id: the directory above it may tell whose it is. */
static enum cgroup_runtime runtime_of_parent(struct text parent)
{
	if (text_is(&parent, "docker"))
		return CGROUP_RUNTIME_DOCKER;
	if (text_is(&parent, "k8s.io")) /* containerd's namespace for the kubelet */
		return CGROUP_RUNTIME_CONTAINERD;
	if (text_is(&parent, "lxc"))
		return CGROUP_RUNTIME_LXC;
	return CGROUP_RUNTIME_UNKNOWN;
}

/* Processes that watch over a container and sit beside it. */
static bool leaf_monitor(struct text name, struct text parent, struct leaf *ret)
{
	if (!text_starts(&name, "crio-conmon-") && !text_starts(&name, "libpod-conmon-") &&
	    !text_is(&name, "conmon") && !text_starts(&name, "lxc.monitor") &&
	    !text_is(&parent, "lxc.monitor") &&
	    !(text_is(&name, "supervisor") && text_starts(&parent, "systemd-nspawn@")))
		return false;
	*ret = monitor;
	return true;
}

/* <slice>:<prefix>:<id>, a directory that runc was to give to systemd and made itself. */
static bool leaf_colon(struct text name, struct leaf *ret)
{
	struct text slice, prefix;
	struct leaf leaf = {.kind = CGROUP_KIND_CONTAINER};

	if (!text_until(&name, ':', &slice) || !text_until(&name, ':', &prefix))
		return false;
	if (!prefix_find(prefix, &leaf.runtime) || !is_hex_id(name))
		return false;
	leaf.id = name;
	*ret = leaf;
	return true;
}

/* <id>, <prefix>-<id>[.scope], kata_<id>. */
static bool leaf_hex(struct text name, struct text parent, struct leaf *ret)
{
	struct leaf leaf = {.kind = CGROUP_KIND_CONTAINER};
	bool scope = text_suffix(&name, ".scope");
	struct text head;

	if (!text_tail(name, HEX_ID_LEN, &head, &leaf.id) || !is_hex_id(leaf.id))
		return false;
	/* Podman's pod, with its containers' directories in it, and nothing else */
	if (text_empty(&head) && text_is(&parent, "libpod_parent"))
		return false;
	if (text_is(&head, "kata_") || (text_empty(&head) && text_is(&parent, "kata_overhead"))) {
		leaf.runtime = CGROUP_RUNTIME_KATA;
		leaf.kind = CGROUP_KIND_SANDBOX;
	} else if (text_empty(&head)) {
		leaf.runtime = runtime_of_parent(parent);
	} else if (!text_suffix(&head, "-") || !prefix_find(head, &leaf.runtime)) {
		return false;
	}
	/* Under systemd CRI-O's containers are scopes; for a sandbox whose infra container it drops
	 * it makes a plain directory. */
	if (leaf.runtime == CGROUP_RUNTIME_CRIO && !scope && text_suffix(&parent, ".slice"))
		leaf.kind = CGROUP_KIND_SANDBOX;
	*ret = leaf;
	return true;
}

/* <32 digits>-<number>, a task of ECS on Fargate. */
static bool leaf_ecs(struct text name, struct leaf *ret)
{
	struct leaf leaf = {
		.runtime = CGROUP_RUNTIME_ECS, .kind = CGROUP_KIND_CONTAINER, .id = name};
	struct text task;
	uint64_t number;

	if (!text_until(&name, '-', &task) || text_len(&task) != 32)
		return false;
	for (const char *p = task.p; p < task.end; p++)
		if (!is_lower_hex(*p))
			return false;
	if (!text_only_u64(name, 10, &number) || !is_name(leaf.id))
		return false;
	*ret = leaf;
	return true;
}

static bool leaf_garden(struct text name, struct leaf *ret)
{
	if (!has_form(name, "hhhhhhhh-hhhh-hhhh-hhhh-hhhh"))
		return false;
	*ret = (struct leaf){
		.runtime = CGROUP_RUNTIME_GARDEN, .kind = CGROUP_KIND_CONTAINER, .id = name};
	return true;
}

/* <allocation's UUID>.<task>.scope; without the suffix where Nomad makes the directory itself. */
static bool leaf_nomad(struct text name, struct text parent, struct leaf *ret)
{
	bool scope = text_suffix(&name, ".scope");
	struct text id;

	if (!scope && !text_is(&parent, "nomad") && !text_is(&parent, "share") &&
	    !text_is(&parent, "reserve"))
		return false;
	if (!text_until(&name, '.', &id) || text_empty(&name) ||
	    !has_form(id, "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh"))
		return false;
	*ret = (struct leaf){
		.runtime = CGROUP_RUNTIME_NOMAD, .kind = CGROUP_KIND_CONTAINER, .id = id};
	return true;
}

static bool leaf_lxc(struct text name, struct text parent, struct leaf *ret)
{
	if (!text_is(&parent, "lxc") && !text_is(&parent, "lxc.payload") &&
	    !text_prefix(&name, "lxc.payload."))
		return false;
	if (!is_name(name))
		return false;
	*ret = (struct leaf){
		.runtime = CGROUP_RUNTIME_LXC, .kind = CGROUP_KIND_CONTAINER, .id = name};
	return true;
}

/* Machines of systemd-machined: containers of libvirt's lxc driver and of nspawn. Its other
 * drivers' are virtual machines, "machine-<driver>\x2d<number>\x2d<name>.scope". */
static bool leaf_machine(struct text name, struct text parent, struct leaf *ret)
{
	static const char *const vms[] = {"qemu\\x2d", "ch\\x2d", "xen\\x2d", "bhyve\\x2d"};
	struct leaf leaf = {
		.runtime = CGROUP_RUNTIME_NSPAWN, .kind = CGROUP_KIND_CONTAINER, .escaped = true};

	if (!text_is(&parent, "machine.slice"))
		return false;
	if (!text_suffix(&name, ".service") && !text_suffix(&name, ".scope"))
		return false;
	if (!text_prefix(&name, "machine-") && !text_prefix(&name, "systemd-nspawn@"))
		return false;
	for (size_t i = 0; i < array_size(vms); i++)
		if (text_starts(&name, vms[i]))
			return false;
	if (text_prefix(&name, "lxc\\x2d"))
		leaf.runtime = CGROUP_RUNTIME_LXC;
	if (!is_name(name))
		return false;
	leaf.id = name;
	*ret = leaf;
	return true;
}

bool leaf_parse(struct text name, struct text parent, struct leaf *ret)
{
	return leaf_monitor(name, parent, ret) || leaf_colon(name, ret) ||
	       leaf_hex(name, parent, ret) || leaf_ecs(name, ret) || leaf_garden(name, ret) ||
	       leaf_nomad(name, parent, ret) || leaf_lxc(name, parent, ret) ||
	       leaf_machine(name, parent, ret);
}
