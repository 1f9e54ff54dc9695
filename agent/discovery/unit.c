// SPDX-License-Identifier: Apache-2.0
/*
 * systemd makes a cgroup for each unit, inside those of the slices that it is in:
 *
 *	/system.slice/ssh.service
 *	/user.slice/user-1000.slice/session-3.scope		somebody who is logged in
 *	/user.slice/user-1000.slice/user@1000.service/init.scope	a user's own systemd,
 *	/user.slice/user-1000.slice/user@1000.service/app.slice/web.service	and a unit of it
 *
 * Two users' units have the same names, so the user is part of what a unit is. He is whom the
 * outermost component names: what is further in, he may have made up himself.
 *
 * A session has a number that means nothing once it is over, so all of a user's are named by his
 * slice; and init.scope, which is the process of a systemd, by what it is of.
 *
 * Podman and CRI-O start a monitor for each container, in a scope with the container's id in its
 * name, "libpod-conmon-<id>.scope": those of a slice are one, "libpod-conmon".
 *
 * Source: the manuals systemd.slice(5), systemd.special(7), pam_systemd(8), user@.service(5).
 */
#include "discovery/unit.h"

#include <stddef.h>

#include "base/cleanup.h"
#include "discovery/cgroup_line.h"

/* How good a component is as a name: 2 for a unit that processes are started in, 1 for a slice,
 * which groups units, 0 for what is no unit. */
static int rank_of(struct text component)
{
	static const char *const types[] = {".service", ".scope", ".mount", ".socket", ".swap"};

	for (size_t i = 0; i < array_size(types); i++)
		if (text_suffix(&component, types[i]))
			return text_empty(&component) ? 0 : 2;
	if (text_suffix(&component, ".slice"))
		return text_empty(&component) ? 0 : 1;
	return 0;
}

/* "<prefix>1000<suffix>" */
static bool has_number(struct text component, const char *prefix, const char *suffix,
		       struct text *ret)
{
	uint64_t number;

	if (!text_prefix(&component, prefix) || !text_suffix(&component, suffix) ||
	    !text_only_u64(component, 10, &number))
		return false;
	*ret = component;
	return true;
}

bool unit_is_manager(struct text component, struct text *ret_user)
{
	return has_number(component, "user@", ".service", ret_user);
}

static bool is_session(struct text component)
{
	return text_prefix(&component, "session-") && text_suffix(&component, ".scope") &&
	       !text_empty(&component);
}

/* The way down a path; the unit is empty until one was found. */
struct walk {
	struct unit unit;
	int rank;
	size_t at;	    /* its place in the path */
	struct text slice;  /* the last one passed, */
	struct text above;  /* and the one it is in */
	struct text user;   /* the first */
	struct text parent; /* the component passed last */
};

static struct text user_of(struct text component)
{
	struct text user;

	if (unit_is_manager(component, &user) || has_number(component, "user-", ".slice", &user))
		return user;
	return text_of("");
}

/* What is not named by itself but by what it is in, which was found just before. */
static bool is_nameless(const struct walk *w, struct text component)
{
	struct text user;

	if (text_is(&component, "init.scope"))
		return unit_is_manager(w->parent, &user);
	return is_session(component) && has_number(w->parent, "user-", ".slice", &user);
}

static struct text name_of(struct text component)
{
	static const char *const monitors[] = {"libpod-conmon", "crio-conmon"};

	for (size_t i = 0; i < array_size(monitors); i++) {
		struct text rest = component;

		if (text_prefix(&rest, monitors[i]) && text_starts(&rest, "-"))
			return (struct text){component.p, rest.p};
	}
	return component;
}

static void walk_component(struct walk *w, struct text component, size_t at)
{
	const int rank = rank_of(component);

	if (text_empty(&w->user))
		w->user = user_of(component);
	if (rank == 1) {
		w->above = w->slice;
		w->slice = component;
	}
	if (rank && is_nameless(w, component)) {
		w->rank = rank; /* as good as if it had a name */
	} else if (rank && rank >= w->rank) {
		w->unit.name = name_of(component);
		w->unit.slice = rank == 1 ? w->above : w->slice;
		w->rank = rank;
	}
	w->at = w->rank == rank && rank ? at : w->at;
	w->parent = component;
}

static struct walk walk(struct text path)
{
	struct walk w = {.unit = {text_of(""), text_of(""), text_of("")},
			 .slice = text_of(""),
			 .above = text_of(""),
			 .user = text_of(""),
			 .parent = text_of("")};
	struct text component;

	for (size_t at = 1; text_until(&path, '/', &component); at++)
		walk_component(&w, component, at);
	w.unit.user = w.user;
	return w;
}

bool unit_of_path(struct text path, struct unit *ret)
{
	const struct walk w = walk(path);

	if (!w.rank)
		return false;
	*ret = w.unit;
	return true;
}

bool unit_of_proc(struct text proc_cgroup, struct unit *ret)
{
	struct walk best = {0}, w;
	struct cgroup_line line;

	while (cgroup_line_next(&proc_cgroup, &line)) {
		w = walk(line.path);
		if (w.rank > best.rank || (w.rank && w.rank == best.rank && w.at > best.at))
			best = w;
	}
	if (!best.rank)
		return false;
	*ret = best.unit;
	return true;
}
