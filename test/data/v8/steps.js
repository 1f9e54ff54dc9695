// SPDX-License-Identifier: Apache-2.0
// A cycle of known calls, for ever. test/unit/bpf/test_walkruntime.c steps through it and has the list of its stacks; comments
// name the lines of the calls, as caller > callee.
"use strict";

const ONE = [1];
const FAULT = new Error("fault");
let sink = 0;

function leaf(x) {
	return (x * 31 + 7) | 0;
}

function key(x) {
	sink += leaf(x); // key > leaf
}

function thrower() {
	sink = leaf(1); // thrower > leaf
	throw FAULT;
}

function* made() {
	yield leaf(2); // made > leaf
}

class Thing {
	constructor() {
		this.x = leaf(3); // Thing > leaf
	}
}

function cycle() {
	sink += leaf(0); // cycle > leaf
	ONE.forEach(key); // cycle > key
	try {
		thrower(); // cycle > thrower
	} catch (e) {
		sink++;
	}
	for (const x of made()) // cycle > made
		sink = x;
	sink += new Thing().x; // cycle > Thing
}

function run(turns) {
	for (; turns; turns--)
		cycle(); // run > cycle
}

run(20000);
require("fs").writeSync(1, "ready\n");
run(2 ** 50);
