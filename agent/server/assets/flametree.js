// SPDX-License-Identifier: Apache-2.0
// The tree of a flame graph without functions of some kinds. Callees of a removed function become
// callees of its caller: equal ones are one node, and the function's own value is its caller's.
// The tree is parallel arrays, depth first (see agent/pprof/flame.h).
"use strict";

// The node's child of that name; made if it is new.
function childOf(node, name) {
	let child = node.children.get(name);

	if (!child) {
		child = { name, value: 0, self: 0, children: new Map() };
		node.children.set(name, child);
	}
	return child;
}

// The root of the new tree.
function mergedTree(data, hidden) {
	const { name, depth, value, self } = data.nodes;
	const root = { name: name[0], value: value[0], self: self[0], children: new Map() };
	const path = [root]; // by depth in the old tree: where its callees belong

	for (let i = 1; i < depth.length; i++) {
		const caller = path[depth[i] - 1];
		const shown = !hidden.has(data.kinds[name[i]]);
		const node = shown ? childOf(caller, name[i]) : caller;

		if (shown)
			node.value += value[i];
		node.self += self[i];
		path[depth[i]] = node;
	}
	return root;
}

// As the agent orders them: "(other)" is the last one.
function byName(children, names) {
	const key = (node) => names[node.name] === "(other)" ? "\uffff" : names[node.name];

	return Array.from(children.values()).sort((a, b) => key(a) < key(b) ? -1 : 1);
}

// data itself if hidden, a set of kinds, is empty.
function flameWithout(data, hidden) {
	const nodes = { name: [], depth: [], value: [], self: [] };

	if (!hidden.size)
		return data;
	const stack = [[mergedTree(data, hidden), 0]];
	while (stack.length) {
		const [node, depth] = stack.pop();

		nodes.name.push(node.name);
		nodes.depth.push(depth);
		nodes.value.push(node.value);
		nodes.self.push(node.self);
		for (const child of byName(node.children, data.names).reverse())
			stack.push([child, depth + 1]);
	}
	return { ...data, nodes };
}

if (typeof module !== "undefined")
	module.exports = { flameWithout };
