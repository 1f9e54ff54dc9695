// SPDX-License-Identifier: Apache-2.0
// Calls of known functions in known order, for ever: the argument says what the innermost one does. With ",plain" behind
// it, the fast compiler is off, which inlines functions whatever the options are; with ",maglev", the other one is off.
"use strict";

const DEPTH = 6;
const [mode, plain] = process.argv[2].split(",");
const turns = mode === "burn" ? 4000 : 1;
const cell = new Int32Array(new SharedArrayBuffer(4));
let sink = 0;

function tiny(x) {
	return (x * 31 + 7) | 0;
}

function leaf(x) {
	if (mode === "sleep")
		Atomics.wait(cell, 0, 0, 1);
	for (let i = 0; i < turns; i++)
		x = (x * 31 + i) | 0;
	return tiny(x);
}

class Named {
	run(x) {
		return leaf(x) + 1;
	}
}

const steps = [new Named(), { run: (x) => leaf(x) + 2 }];

// A builtin calls back.
function each(x) {
	let sum = 0;
	[x].forEach(function visit(y) {
		sum += steps[y & 1].run(y);
	});
	return sum;
}

function deep(n, x, a, b) {
	if (n === 0)
		return each(x);
	return deep(n - 1, x + n, a, b) + a;
}

function outer(x) {
	return (deep(DEPTH - 1, x, 1, 2) + 1) | 0;
}

function pass() {
	sink = outer(sink);
}

// The call is the first instruction of its line.
function forever() {
	const turn = pass;

	while (true)
		turn();
}

if (plain && parseFloat(process.versions.v8) >= 11)
	require("v8").setFlagsFromString(plain === "maglev" ? "--no-turbofan" : "--no-maglev");
require("fs").writeSync(1, "ready\n");
forever();
