#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// The controls of an entity's page: late and failed answers, and what a click leaves behind.
"use strict";
const assert = require("assert");
const { h, run, settle } = require("./dom.js");

// read 3 and the kernel's pread 2
function tree(unit, more) {
	return { unit, total: 5, profiles: 1, cut: 0, unnamed: [], names: ["", "read", "pread"],
		kinds: ["unknown", "native", "kernel"],
		nodes: { name: [0, 1, 2], depth: [0, 1, 1], value: [5, 3, 2], self: [0, 3, 2] }, ...more };
}

// The page of an entity. Answers are given by hand: page.answers is a list of functions, one for each request.
function page(more) {
	const section = Object.assign(h("section#flame"), { dataset: { entity: "e", nowMs: "3660000", windowMs: "60000" } });
	const answers = [];
	const globals = run(["flametree.js", "flame.js"], section, {
		fetch: (address) => new Promise((give, fail) => answers.push({ give, fail, address })), ...more });
	const by = (test) => section.find(test);

	return { answers, globals, section,
		graph: by((element) => element.className === "graph"),
		button: (text) => by((element) => element.tag === "button" && element.textContent === text),
		legend: by((element) => element.className === "legend"),
		functions: by((element) => element.className === "functions"),
		search: by((element) => element.tag === "input"),
		chosen: () => section.querySelectorAll("select").map((select) => select.value).join(" "),
		asked: () => answers[answers.length - 1].address.replace("/entity/e/flame.json?", ""),
		choose(nth, value) {
			const select = section.querySelectorAll("select")[nth];
			select.value = value;
			select.dispatch("change");
		} };
}

const ok = (data) => ({ ok: true, json: async () => data });
const not_found = { ok: false, status: 404, text: async () => "" };

const TESTS = {
	async "a page without a graph"() {
		run(["flametree.js", "flame.js"], h("table#entities"));
	},
	async "each choice of the controls has a text of its own"() {
		for (const select of page().section.querySelectorAll("select")) {
			const texts = select.children.map((option) => option.textContent);
			assert.strictEqual(new Set(texts).size, texts.length, texts.join(", "));
		}
	},
	async "the answer to an earlier choice comes last"() {
		const p = page();
		p.choose(1, "5");
		p.answers[1].give(ok(tree("count", { profiles: 2 })));
		await settle();
		p.answers[0].give(ok(tree("count", { profiles: 99 })));
		await settle();
		assert.match(p.section.textContent, /2 profiles, total 5/);
		assert.doesNotMatch(p.section.textContent, /99 profiles/);
	},
	async "no profile after a choice with one"() {
		const p = page();
		p.answers[0].give(ok(tree("count")));
		await settle();
		p.search.value = "read";
		p.search.dispatch("input");
		assert.strictEqual(p.legend.children.length, 2);
		p.choose(1, "5");
		p.answers[1].give(not_found);
		await settle();
		assert.strictEqual(p.graph.textContent, "No profile of this kind in this time.");
		assert.doesNotMatch(p.section.textContent, /1 profile,|found/);
		assert.strictEqual(p.legend.children.length, 0, "kinds of the earlier tree");
		p.button("Reset zoom").click();
		p.search.dispatch("input");
	},
	async "a zoom reset before the first answer"() {
		page().button("Reset zoom").click();
	},
	async "an answer that breaks off"() {
		const p = page();
		p.answers[0].give({ ok: true, json: async () => { throw new Error("broken off"); } });
		await settle();
		assert.strictEqual(p.graph.textContent, "podprof does not answer.");
		assert.doesNotMatch(p.section.textContent, /Loading/);
	},
	async "no answer after a choice with one"() {
		const p = page();
		p.answers[0].give(ok(tree("count")));
		await settle();
		p.choose(1, "5");
		p.answers[1].fail(new Error("refused"));
		await settle();
		assert.strictEqual(p.graph.textContent, "podprof does not answer.", "the earlier graph below another choice");
	},
	async "a function of the list is found alone"() {
		const p = page();
		p.answers[0].give(ok(tree("count")));
		await settle();
		p.functions.find((element) => element.tag === "button" && element.textContent === "read").click();
		assert.match(p.section.textContent, /60\.00 % found/);
		p.search.value = "READ";
		p.search.dispatch("input");
		assert.match(p.section.textContent, /100 % found/);
		p.search.value = "kind:kernel";
		p.search.dispatch("input");
		assert.match(p.section.textContent, /40\.00 % found/);
	},
	async "the address without hidden kinds"() {
		const p = page();
		p.answers[0].give(ok(tree("count")));
		await settle();
		p.button("kernel").click();
		assert.strictEqual(p.globals.location.href, "http://node/entity/e?without=kernel");
		p.button("kernel").click();
		assert.strictEqual(p.globals.location.href, "http://node/entity/e");
	},
	async "the address has the choices, and the way back shows the earlier ones"() {
		let now = 90000000; // a day ahead of the node
		const p = page({ Date: { now: () => now } });
		assert.strictEqual(p.asked(), "kind=cpu&type=cpu&from=0", "the last hour, and a window");
		p.choose(0, "offcpu/switches");
		assert.strictEqual(p.globals.location.search, "?kind=offcpu&type=switches&minutes=60");
		p.choose(1, "5");
		assert.strictEqual(p.globals.location.search, "?kind=offcpu&type=switches&minutes=5");
		assert.strictEqual(p.asked(), "kind=offcpu&type=switches&from=3300000");
		p.globals.history.back();
		assert.strictEqual(p.chosen(), "offcpu/switches 60");
		assert.strictEqual(p.asked(), "kind=offcpu&type=switches&from=0");
		p.globals.history.back();
		assert.strictEqual(p.chosen(), "cpu/cpu 60");
		assert.strictEqual(p.asked(), "kind=cpu&type=cpu&from=0");
		p.choose(1, "15");
		assert.strictEqual(p.globals.location.search, "?kind=cpu&type=cpu&minutes=15", "a new control after the way back");
		now += 5000;
		p.choose(1, "60");
		assert.strictEqual(p.asked(), "kind=cpu&type=cpu&from=5000", "five seconds later");
	},
	async "an address with choices"() {
		for (const [search, chosen, asked] of [
			["?kind=go_heap&type=alloc_space&minutes=all", "go_heap/alloc_space all", "kind=go_heap&type=alloc_space"],
			["?kind=go_heap&from=7&until=8", "go_heap/inuse_space one", "kind=go_heap&type=inuse_space&from=7&until=8"],
			["?from=7", "cpu/cpu one", "kind=cpu&type=cpu&from=7"],
			["?kind=cpu&type=none&minutes=none", "cpu/cpu 60", "kind=cpu&type=cpu&from=0"],
			["?kind=none&minutes=one", "cpu/cpu 60", "kind=cpu&type=cpu&from=0"]]) {
			const p = page({ Date: { now: () => 3660000 }, location: new URL("http://node/entity/e" + search) });
			assert.strictEqual(p.chosen(), chosen, search);
			assert.strictEqual(p.asked(), asked, search);
		}
	},
	async "the chosen profile, left and chosen again"() {
		const p = page({ location: new URL("http://node/entity/e?kind=cpu&from=7&until=8&without=go") });
		p.choose(1, "all");
		assert.strictEqual(p.globals.location.search, "?without=go&kind=cpu&type=cpu&minutes=all");
		assert.strictEqual(p.asked(), "kind=cpu&type=cpu");
		p.choose(1, "one");
		assert.strictEqual(p.globals.location.search, "?without=go&kind=cpu&type=cpu&from=7&until=8");
		assert.strictEqual(p.asked(), "kind=cpu&type=cpu&from=7&until=8");
		p.globals.history.back();
		assert.strictEqual(p.chosen(), "cpu/cpu all");
		p.choose(1, "one");
		assert.strictEqual(p.asked(), "kind=cpu&type=cpu&from=7&until=8");
	},
	async "no profile, for a reason"() {
		for (const [reasons, type, text] of [
			[{ noCpu: "Off." }, "cpu/cpu", " Off."], [{ noCpu: "Off." }, "offcpu/delay", ""],
			[{ noOffcpu: "Off." }, "offcpu/delay", " Off."], [{ noGo: "Off." }, "go_mutex/delay", " Off."],
			[{ noCpu: "Off.", noStore: "Not kept." }, "cpu/cpu", " Not kept."]]) {
			const p = page();
			Object.assign(p.section.dataset, reasons);
			p.choose(0, type);
			p.answers[1].give(not_found);
			await settle();
			assert.strictEqual(p.graph.textContent, "No profile of this kind in this time." + text);
		}
	},
	async "times below a millisecond"() {
		for (const [value, text] of [[0, "0.0 ms"], [5, "0.0 µs"], [42100, "42.1 µs"], [99999, "100.0 µs"],
			[100000, "0.1 ms"], [1500000, "1.5 ms"], [2e9, "2.00 s"], [90e9, "1.5 min"]]) {
			const p = page();
			p.answers[0].give(ok(tree("nanoseconds", { nodes: { name: [0, 1], depth: [0, 1], value: [value, value],
				self: [0, value] }, total: value })));
			await settle();
			assert.ok(p.section.textContent.includes("1 profile, total " + text),
				value + ": " + p.section.textContent.slice(0, 200));
		}
	},
};

(async () => {
	let failed = 0;

	process.on("unhandledRejection", (error) => {
		console.log("unhandled: " + error.stack);
		process.exit(1);
	});
	for (const [what, test] of Object.entries(TESTS))
		try {
			await test();
		} catch (error) {
			failed++;
			console.log(what + ": " + error.stack);
		}
	await settle();
	console.log(Object.keys(TESTS).length + " tests, " + failed + " failed");
	process.exit(failed ? 1 : 0);
})();
