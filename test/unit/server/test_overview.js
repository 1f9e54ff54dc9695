#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// The first page's script: a page that was loaded before the first window ended.
"use strict";
const assert = require("assert");
const { h, run, settle } = require("./dom.js");

function body(summary, rows) {
	const none = h("p#none.empty", "Nothing");
	none.hidden = rows.length > 0;
	return h("main", h("input#filter"), h("p#summary", summary),
		h("table#entities", h("thead", h("tr", h("th", "Name"), h("th", "Kind"), h("th", "CPU time"))),
			h("tbody", ...rows.map(([name, cpu, names]) => h("tr." + (names || ""), h("th", name), h("td", "process"),
				Object.assign(h("td", cpu + " ms"), { dataset: { v: String(cpu) } }))))),
		h("button#past"), none);
}

(async () => {
	let refresh;
	const shown = body("No profiles yet; 0 listed.", []);
	const next = body("CPU time; 3 listed.", [["small", 1], ["large", 20], ["before", 0, "past"]]);

	run(["podprof.js"], shown, {
		setInterval: (act) => { refresh = act; },
		fetch: async () => ({ ok: true, text: async () => "" }),
		DOMParser: class { parseFromString() { return h("html", next); } },
	});
	assert.strictEqual(shown.getElementById("past").hidden, true);
	await refresh();
	await settle();
	assert.deepStrictEqual(shown.querySelectorAll("tbody th").map((cell) => cell.textContent), ["large", "small", "before"]);
	assert.strictEqual(shown.getElementById("summary").textContent, "CPU time; 3 listed.");
	assert.strictEqual(shown.getElementById("none").hidden, true);
	assert.strictEqual(shown.getElementById("past").textContent, "Show 1 without samples in this window");
	console.log("1 test, 0 failed");
})().catch((error) => {
	console.log(error.stack);
	process.exit(1);
});
