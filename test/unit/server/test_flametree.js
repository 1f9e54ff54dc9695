#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Flame graphs without functions of some kinds: rows of stacks, root first, and the tree that remains.
"use strict";
const assert = require("assert");
const { flameWithout } = require("../../../agent/server/assets/flametree.js");

// "main[native] f[python]" -> 3, as the agent sends it.
function treeOf(stacks) {
	const names = [""], kinds = ["unknown"];
	const nodes = { name: [], depth: [], value: [], self: [] };
	const root = { name: 0, value: 0, self: 0, children: [] };

	for (const [stack, value] of Object.entries(stacks)) {
		let node = root;
		node.value += value;
		for (const frame of stack.split(" ").filter((word) => word)) {
			const [, name, kind] = frame.match(/(.*)\[(.*)\]/);
			let number = names.indexOf(name);
			if (number < 0) {
				number = names.push(name) - 1;
				kinds.push(kind);
			}
			let child = node.children.find((other) => other.name === number);
			if (!child)
				node.children.push(child = { name: number, value: 0, self: 0, children: [] });
			child.value += value;
			node = child;
		}
		node.self += value;
	}
	(function list(node, depth) {
		nodes.name.push(node.name);
		nodes.depth.push(depth);
		nodes.value.push(node.value);
		nodes.self.push(node.self);
		node.children.forEach((child) => list(child, depth + 1));
	})(root, 0);
	return { unit: "count", total: root.value, names, kinds, nodes };
}

// "depth name value self" of each node.
function rowsOf(tree) {
	const n = tree.nodes;
	return n.name.map((name, i) => [n.depth[i], tree.names[name] || "all", n.value[i], n.self[i]].join(" "));
}

const MIXED = {
	"start[native] eval[native] f[python] call[native] g[python] sort[native]": 5,
	"start[native] eval[native] f[python] other_call[native] g[python]": 2,
	"start[native] eval[native] f[python] write[native] sys[kernel]": 1,
	"thread[native] a[python]": 4,
};

const ROWS = [
	["nothing hidden", MIXED, [], [
		"0 all 12 0", "1 start 8 0", "2 eval 8 0", "3 f 8 0", "4 call 5 0", "5 g 5 0", "6 sort 5 5",
		"4 other_call 2 0", "5 g 2 2", "4 write 1 0", "5 sys 1 1", "1 thread 4 0", "2 a 4 4"]],
	["equal callees become one", MIXED, ["native"], [
		"0 all 12 0", "1 a 4 4", "1 f 8 0", "2 g 7 7", "2 sys 1 1"]],
	["two kinds", MIXED, ["native", "kernel"], ["0 all 12 0", "1 a 4 4", "1 f 8 1", "2 g 7 7"]],
	["all", MIXED, ["native", "kernel", "python"], ["0 all 12 12"]],
	["a kind that is not there", MIXED, ["java"], [
		"0 all 12 0", "1 start 8 0", "2 eval 8 0", "3 f 8 0", "4 call 5 0", "5 g 5 0", "6 sort 5 5",
		"4 other_call 2 0", "5 g 2 2", "4 write 1 0", "5 sys 1 1", "1 thread 4 0", "2 a 4 4"]],
	["recursion through a hidden function", { "f[python] c[native] f[python] c[native] f[python]": 3, "f[python]": 1 },
		["native"], ["0 all 4 0", "1 f 4 1", "2 f 3 0", "3 f 3 3"]],
	["the remainder is the last", { "c[native] f[python]": 3, "c[native] (other)[unknown]": 1 }, ["native"],
		["0 all 4 0", "1 f 3 3", "1 (other) 1 1"]],
	["no samples", {}, ["native"], ["0 all 0 0"]],
	["deep", { [Array(1024).fill("c[native] f[python]").join(" ")]: 1 }, ["native"],
		["0 all 1 0", ...Array.from({ length: 1024 }, (_, i) => (i + 1) + " f 1 " + (i === 1023 ? 1 : 0))]],
];

let failed = 0;
for (const [what, stacks, hidden, expected] of ROWS) {
	const before = treeOf(stacks);
	const kept = JSON.stringify(before);
	try {
		assert.deepStrictEqual(rowsOf(flameWithout(before, new Set(hidden))), expected);
		assert.strictEqual(JSON.stringify(before), kept, "the tree as it came has changed");
	} catch (error) {
		failed++;
		console.log(what + ": " + error.message);
	}
}
console.log(ROWS.length + " rows, " + failed + " failed");
process.exit(failed ? 1 : 0);
