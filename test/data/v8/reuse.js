// SPDX-License-Identifier: Apache-2.0
// Functions that are made, run for some milliseconds and dropped, for ever. The process has the number of the
// one that runs as a name.
"use strict";
const fs = require("fs");
const { performance } = require("perf_hooks");

const comm = fs.openSync("/proc/self/comm", "w");
const kept = [];

function burn(end) {
	while (performance.now() < end)
		;
}

function make(number) {
	return new Function(
		"burn", `function outer${number}(end) { inner${number}(end); }
		function inner${number}(end) { burn(end); }
		return outer${number};`)(burn);
}

console.log("ready");
for (let k = 1;; k++) {
	const number = String(k % 1000000).padStart(6, "0");
	const made = make(number);

	fs.writeSync(comm, "g" + number);
	made(performance.now() + 3);
	fs.writeSync(comm, "none");
	kept.push(made);
	while (kept.length > 20 + k % 40)
		kept.shift();
	if (k % 20 === 0)
		gc();
}
