// SPDX-License-Identifier: Apache-2.0
// Code that is no function of JavaScript, for ever: a regular expression, and WebAssembly that calls itself and JavaScript.
"use strict";

// (module (import "js" "add" (func (param i32) (result i32)))
//   (func (export "fib") (param i32) (result i32)
//     (if (result i32) (i32.lt_s (local.get 0) (i32.const 2))
//       (then (call 0 (local.get 0)))
//       (else (i32.add (call 1 (i32.sub (local.get 0) (i32.const 1)))
//                      (call 1 (i32.sub (local.get 0) (i32.const 2))))))))
const MODULE = new Uint8Array([
	0, 97, 115, 109, 1, 0, 0, 0,
	1, 6, 1, 96, 1, 127, 1, 127,
	2, 10, 1, 2, 106, 115, 3, 97, 100, 100, 0, 0,
	3, 2, 1, 0,
	7, 7, 1, 3, 102, 105, 98, 0, 1,
	10, 32, 1, 30, 0, 32, 0, 65, 2, 72, 4, 127, 32, 0, 16, 0, 5,
	32, 0, 65, 1, 107, 16, 1, 32, 0, 65, 2, 107, 16, 1, 106, 11, 11,
]);
const TEXT = "the quick brown fox jumps over the lazy dog ".repeat(20);
const PATTERN = /[a-z]+ (fox|dog) [0-9]+/;
let calls = 0;

function add(x) {
	calls++;
	return x;
}

const { fib } = new WebAssembly.Instance(new WebAssembly.Module(MODULE), { js: { add } }).exports;

function match() {
	return PATTERN.exec(TEXT) ? 1 : 0;
}

function wasm() {
	return fib(12);
}

function cycle() {
	let n = 0;

	for (let i = 0; i < 5; i++)
		n += match();
	for (let i = 0; i < 20; i++)
		n += wasm();
	return n;
}

function forever(turns) {
	for (; turns; turns--)
		cycle();
}

forever(300);
require("fs").writeSync(1, "ready\n");
forever(2 ** 50);
