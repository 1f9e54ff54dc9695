// SPDX-License-Identifier: Apache-2.0
// Seconds of CPU time in inner(), which a builtin calls for outer().
"use strict";

const end = process.argv[2] * 1e6;

function inner(x) {
	let n = 0;

	for (let i = 0; i < 2000; i++)
		n = (n + i * x) % 1000003;
	return n;
}

function outer() {
	return [3, 1, 2, 4, 5, 6].map(inner);
}

function main() {
	for (let cpu = { user: 0 }; cpu.user < end; cpu = process.cpuUsage())
		outer();
}

main();
