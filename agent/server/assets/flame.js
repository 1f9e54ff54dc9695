// SPDX-License-Identifier: Apache-2.0
// The flame graph of an entity's page. The tree comes depth first as parallel arrays (see
// agent/pprof/flame.h); names are foreign text and only ever become textContent.
"use strict";

(function () {
	const section = document.getElementById("flame");
	if (!section)
		return; // the first page
	const ROW = 20; // pixels of a frame with its gap
	const CHARACTER = 7.3; // pixels of a character in a frame
	const MIN_PX = 0.6; // narrower frames are not drawn
	const TOP = 25; // functions in the list below the graph
	const dark = matchMedia("(prefers-color-scheme: dark)");

	// One control chooses the kind and the type of its samples: each text stands alone.
	const KINDS = {
		cpu: [["cpu", "CPU time"], ["samples", "CPU samples"]],
		offcpu: [["delay", "Off-CPU: waiting time"], ["switches", "Off-CPU: waits"]],
		go_heap: [["inuse_space", "Go heap: bytes in use"], ["inuse_objects", "Go heap: objects in use"],
			["alloc_space", "Go heap: bytes allocated"], ["alloc_objects", "Go heap: objects allocated"]],
		go_mutex: [["delay", "Go mutexes: delay of waiters"], ["contentions", "Go mutexes: contentions"]],
		go_block: [["delay", "Go blocking: delay"], ["contentions", "Go blocking: contentions"]],
	};
	const SPANS = [["5", "Last 5 minutes"], ["15", "Last 15 minutes"], ["60", "Last hour"], ["360", "Last 6 hours"],
		["1440", "Last day"], ["all", "Everything stored"]];
	// The attribute of the section that says why there are no profiles of a kind.
	const REASONS = { cpu: "noCpu", offcpu: "noOffcpu", go_heap: "noGo", go_mutex: "noGo", go_block: "noGo" };
	const COLOURS = { go: [190, 45], python: [125, 40], python_library: [125, 14], java: [275, 45], java_library: [275, 18], javascript: [78, 55], javascript_library: [78, 20], kernel: [8, 62], native: [34, 78], unknown: [40, 6] };
	const COLOUR_NAMES = { go: "Go", python: "Python", python_library: "Python's library", java: "Java", java_library: "Java's library", javascript: "JavaScript", javascript_library: "Node's library", native: "native", kernel: "kernel", unknown: "no name" };

	// The profiles have the node's time, and the browser's may be another.
	const behind = Number(section.dataset.nowMs) - Date.now();

	let whole = null; // the tree as it came
	let tree = null; // without hidden kinds, and with parent, end and x of each node added
	let zoom = 0; // the node that fills the width
	let frames = new Map(); // node to element, of what is drawn
	let ui = {};
	let wanted; // the choices in the page's address: kind, type, minutes or else from and until, without
	let range = null; // from and until, also while another time is chosen
	let hidden; // kinds left out
	let asked = 0; // requests for a tree so far; a choice made meanwhile makes an answer stale

	function make(tag, text, attributes) {
		const element = document.createElement(tag);
		if (text !== undefined)
			element.textContent = text;
		for (const [name, value] of Object.entries(attributes || {}))
			element.setAttribute(name, value);
		return element;
	}

	// ---------------------------------------------------------- numbers

	function show(value, unit) {
		if (unit === "nanoseconds") {
			if (value >= 60e9)
				return (value / 60e9).toFixed(1) + " min";
			if (value >= 1e9)
				return (value / 1e9).toFixed(2) + " s";
			return value >= 1e5 || !value ? (value / 1e6).toFixed(1) + " ms" : (value / 1e3).toFixed(1) + " µs";
		}
		if (unit === "bytes") {
			const units = ["B", "KiB", "MiB", "GiB", "TiB"];
			let i = 0;
			for (; value >= 1024 && i < units.length - 1; i++)
				value /= 1024;
			return value.toFixed(i ? 1 : 0) + " " + units[i];
		}
		return value.toLocaleString("en");
	}

	function percent(value) {
		const total = tree.total || 1;
		return (100 * value / total).toFixed(value === tree.total ? 0 : 2) + " %";
	}

	// ---------------------------------------------------------- the tree

	// Where each node begins (in units of value), who its parent is, and where its subtree ends.
	function prepare(data) {
		const n = data.nodes.depth.length;
		const path = []; // the open node of each depth
		const used = new Float64Array(n); // of a node's width by the children so far

		data.parent = new Int32Array(n).fill(-1);
		data.end = new Int32Array(n).fill(n);
		data.x = new Float64Array(n);
		data.deepest = 0;
		for (let i = 0; i < n; i++) {
			const depth = data.nodes.depth[i];
			while (path.length > depth)
				data.end[path.pop()] = i;
			if (depth > 0) {
				const parent = path[depth - 1];
				data.parent[i] = parent;
				data.x[i] = data.x[parent] + used[parent];
				used[parent] += data.nodes.value[i];
			}
			path.push(i);
			data.deepest = Math.max(data.deepest, depth);
		}
		return data;
	}

	function nameOf(i) {
		return i === 0 ? "all" : tree.names[tree.nodes.name[i]];
	}

	// Whose code a name is.
	function kindOf(i) {
		return tree.kinds[tree.nodes.name[i]];
	}

	// Names of one package or prefix get about the same hue, each its own lightness.
	function colour(i) {
		const [hue, saturation] = COLOURS[kindOf(i)];
		const name = nameOf(i);
		let hash = 0;
		for (let at = 0; at < name.length; at++)
			hash = (hash * 31 + name.charCodeAt(at)) >>> 0;
		const light = (dark.matches ? 58 : 70) + hash % 12;
		return "hsl(" + (hue + (hash >>> 8) % 24 - 12) + " " + saturation + "% " + light + "%)";
	}

	// ---------------------------------------------------------- drawing

	function isAbove(i) {
		return i < zoom && tree.end[i] > zoom;
	}

	// Nodes that can be seen: those above the zoomed one at full width, those below it to scale.
	function visible() {
		const width = ui.graph.clientWidth;
		const from = tree.x[zoom], scale = width / (tree.nodes.value[zoom] || 1);
		const seen = [];

		for (let i = zoom; i >= 0; i = tree.parent[i])
			if (i !== zoom)
				seen.push([i, 0, width]);
		for (let i = zoom; i < tree.end[zoom];) {
			const w = tree.nodes.value[i] * scale;
			if (w < MIN_PX) {
				i = tree.end[i];
				continue;
			}
			seen.push([i, (tree.x[i] - from) * scale, w]);
			i++;
		}
		return seen.sort((a, b) => a[0] - b[0]);
	}

	// The end of a Java name tells more than its package: "Adapter.service" of "org.example.Adapter.service(Request)".
	function label(i, w) {
		const name = nameOf(i);

		if (w <= 24)
			return "";
		if (!/^java(_library)?$/.test(kindOf(i)) || name.length * CHARACTER <= w)
			return name;
		return name.replace(/(?<=\S)\(.*/, "").replace(/^([a-z_]\w*\.)+(?=[^.]+\.)/, "");
	}

	function drawFrame(i, x, w, rows) {
		const frame = make("button", label(i, w), { type: "button", tabindex: "-1" });
		const row = tree.nodes.depth[i];

		frame.className = "frame" + (w > 24 ? "" : " thin") + (isAbove(i) ? " above" : "");
		frame.style.left = x + "px";
		frame.style.width = Math.max(w - 1, MIN_PX) + "px";
		frame.style.top = (ui.flip ? rows - 1 - row : row) * ROW + "px";
		frame.style.backgroundColor = colour(i);
		frame.dataset.node = i;
		frame.setAttribute("aria-label", describe(i));
		return frame;
	}

	function draw(focus) {
		const seen = visible();
		const rows = 1 + seen.reduce((most, [i]) => Math.max(most, tree.nodes.depth[i]), 0);
		const all = make("div");

		frames = new Map();
		all.style.height = rows * ROW + "px";
		for (const [i, x, w] of seen) {
			const frame = drawFrame(i, x, w, rows);
			frames.set(i, frame);
			all.append(frame);
		}
		ui.graph.replaceChildren(all);
		if (ui.flip)
			ui.graph.scrollTop = ui.graph.scrollHeight;
		mark();
		reach(frames.has(focus) ? focus : zoom, focus !== undefined);
		ui.reset.disabled = zoom === 0;
	}

	// ---------------------------------------------------------- what one looks at

	function describe(i) {
		const value = tree.nodes.value[i], self = tree.nodes.self[i];
		return nameOf(i) + " — total " + show(value, tree.unit) + " (" + percent(value) + "), self " +
			show(self, tree.unit) + " (" + percent(self) + ")";
	}

	function tell(i) {
		ui.about.textContent = describe(i);
	}

	// One frame at a time is in the tab order; arrows move on from it.
	function reach(i, focus) {
		for (const frame of ui.graph.querySelectorAll("[tabindex='0']"))
			frame.tabIndex = -1;
		const frame = frames.get(i);
		if (!frame)
			return;
		frame.tabIndex = 0;
		if (focus)
			frame.focus();
		tell(i);
	}

	function zoomTo(i) {
		zoom = i;
		draw(i);
	}

	function sibling(i, step) {
		const order = Array.from(frames.keys()).filter((other) => tree.parent[other] === tree.parent[i]);
		return order[order.indexOf(i) + step];
	}

	function firstChild(i) {
		for (const other of frames.keys())
			if (tree.parent[other] === i)
				return other;
		return undefined;
	}

	function onKey(event) {
		const at = event.target.dataset.node;
		if (at === undefined)
			return;
		const i = Number(at);
		const inward = ui.flip ? "ArrowUp" : "ArrowDown", outward = ui.flip ? "ArrowDown" : "ArrowUp";
		const to = {
			[inward]: () => firstChild(i),
			[outward]: () => tree.parent[i],
			ArrowLeft: () => sibling(i, -1),
			ArrowRight: () => sibling(i, 1),
		}[event.key];

		if (event.key === "Escape")
			zoomTo(0);
		else if (to && frames.has(to()))
			reach(to(), true);
		else if (!to)
			return;
		event.preventDefault();
	}

	// ---------------------------------------------------------- search

	// What a search finds, for a node: a part of its name, its whole name in quotation marks, or its kind, as in
	// "kind:java_library".
	function finder(typed) {
		const words = typed.toLowerCase();

		if (words.startsWith("kind:"))
			return (i) => kindOf(i) === words.slice(5);
		if (/^".+"$/.test(typed))
			return (i) => nameOf(i) === typed.slice(1, -1);
		return (i) => nameOf(i).toLowerCase().includes(words);
	}

	// Marks the found nodes, and says how much of the whole lies below them (nested ones count once).
	function mark() {
		const words = ui.search.value.trim();
		const isFound = finder(words);
		let sum = 0, end = 0;

		ui.graph.classList.toggle("searching", words !== "");
		for (const [i, frame] of frames)
			frame.classList.toggle("found", words !== "" && isFound(i));
		ui.found.textContent = "";
		if (!words)
			return;
		for (let i = 1; i < tree.end.length; i++) {
			if (i < end || !isFound(i))
				continue;
			sum += tree.nodes.value[i];
			end = tree.end[i];
		}
		ui.found.textContent = percent(sum) + " found";
	}

	// ---------------------------------------------------------- the largest functions

	// By name: what it used itself, and all below it, where recursion counts once.
	function functions() {
		const flat = new Map(), cum = new Map();
		const open = new Map(); // name to where the outermost call of it ends

		for (let i = 1; i < tree.end.length; i++) {
			const name = tree.nodes.name[i];
			flat.set(name, (flat.get(name) || 0) + tree.nodes.self[i]);
			if (i < (open.get(name) || 0))
				continue;
			open.set(name, tree.end[i]);
			cum.set(name, (cum.get(name) || 0) + tree.nodes.value[i]);
		}
		return Array.from(cum, ([name, total]) => ({ name: tree.names[name], total, self: flat.get(name) }))
			.sort((a, b) => b.self - a.self || b.total - a.total).slice(0, TOP);
	}

	function listFunctions() {
		const body = make("tbody");
		for (const { name, self, total } of functions()) {
			const row = make("tr");
			const button = make("button", name, { type: "button", title: "find in the graph" });
			button.addEventListener("click", function () {
				ui.search.value = '"' + name + '"';
				mark();
				ui.search.focus();
			});
			const meter = make("meter", undefined, { max: tree.total || 1, value: self });
			const bar = make("td", show(self, tree.unit) + " ");
			bar.prepend(meter, " ");
			const label = make("td", undefined, { class: "name" });
			label.append(button);
			row.append(bar, make("td", percent(self)), make("td", show(total, tree.unit)),
				make("td", percent(total)), label);
			body.append(row);
		}
		const head = make("tr");
		for (const text of ["Self", "%", "Total", "%", "Function"])
			head.append(make("th", text, { scope: "col" }));
		const top = make("thead");
		top.append(head);
		ui.table.replaceChildren(top, body);
		ui.list.hidden = false;
	}

	// ---------------------------------------------------------- which profiles

	function readAddress() {
		wanted = new URLSearchParams(location.search);
		hidden = new Set((wanted.get("without") || "").split(",").filter((kind) => COLOURS[kind]));
		if (wanted.has("from") || wanted.has("until"))
			range = ["from", "until"].filter((end) => wanted.has(end)).map((end) => [end, wanted.get(end)]);
	}

	function here() {
		return location.pathname + (String(wanted) ? "?" + wanted : "");
	}

	// The kind, its sample type and the time of the controls.
	function choices() {
		const [kind, type] = ui.type.value.split("/");

		return [["kind", kind], ["type", type], ...(ui.span.value === "one" ? range : [["minutes", ui.span.value]])];
	}

	// A choice is a step of the browser's history: a link, a reload and the way back show the same.
	function choose() {
		for (const name of ["kind", "type", "minutes", "from", "until"])
			wanted.delete(name);
		for (const [name, value] of choices())
			wanted.set(name, value);
		history.pushState(null, "", here());
		load();
	}

	// The last minutes begin with the profile that was under way then: a window may be longer than the minutes.
	function query() {
		const asks = new URLSearchParams(choices());
		const minutes = Number(asks.get("minutes")); // not a number: everything

		asks.delete("minutes");
		if (minutes)
			asks.set("from", Date.now() + behind - minutes * 60000 - Number(section.dataset.windowMs));
		return asks;
	}

	// Without a profile: a longer time may have some, unless there is a reason for none.
	function nothing() {
		const why = section.dataset.noStore || section.dataset[REASONS[ui.type.value.split("/")[0]]];

		return "No profile of this kind in this time." + (why ? " " + why : "");
	}

	// The tree, or a sentence about why there is none.
	async function ask() {
		try {
			const reply = await fetch("/entity/" + encodeURIComponent(section.dataset.entity) + "/flame.json?" +
				query());
			if (reply.ok)
				return [await reply.json(), ""];
			return [null, reply.status === 404 ? nothing() : await reply.text()];
		} catch (error) {
			return [null, "podprof does not answer."];
		}
	}

	async function load() {
		const mine = ++asked;

		ui.about.textContent = "Loading …";
		const [data, problem] = await ask();
		if (mine !== asked)
			return;
		if (!data) {
			showNothing(problem);
			return;
		}
		whole = data;
		listKinds();
		showKinds();
		note();
	}

	function showNothing(problem) {
		tree = whole = null;
		frames = new Map();
		ui.graph.replaceChildren(make("p", problem, { class: "empty" }));
		for (const part of [ui.about, ui.note, ui.found, ui.kinds, ui.table])
			part.replaceChildren();
		ui.list.hidden = ui.reset.disabled = true;
	}

	function showKinds() {
		tree = prepare(flameWithout(whole, hidden));
		zoom = 0;
		draw();
		listFunctions();
	}

	// What a user can do about functions without names, by reason.
	const REMEDIES = {
		stripped_no_debug: "stripped; install its debug symbols or set --debuginfod",
		awaits_debug_file: "its debug file is being downloaded",
		truncated_elf: "the file is truncated or damaged",
		unreadable_elf: "no readable ELF file",
		denied: "podprof may not open the file; see podprof doctor",
		not_opened: "the file could not be opened",
		overwritten: "another content was written into the file",
		slow_file: "its file system does not answer",
		over_budget: "the file takes too much work",
		no_perf_map: "compiled code, such as that of a process's first second; if it stays, let the runtime write a perf map, as node --perf-basic-prof does",
		not_in_perf_map: "not in the perf map or jitdump",
		no_mapping: "code in memory that was mapped later or not at all",
		kernel_hidden: "the kernel hides its addresses; see kernel.kptr_restrict",
	};

	// The image with the largest share, from one per cent on.
	function hint() {
		const worst = tree.unnamed[0];

		if (!worst || worst.share < 0.01)
			return [];
		const image = worst.path.slice(worst.path.lastIndexOf("/") + 1);
		return [Math.round(worst.share * 100) + " % of samples have functions without a name, most in " + image + ": " +
			(REMEDIES[worst.reason] || worst.reason.replaceAll("_", " "))];
	}

	function note() {
		const parts = [tree.profiles + (tree.profiles === 1 ? " profile" : " profiles"),
			"total " + show(tree.total, tree.unit)];
		if (tree.cut)
			parts.push(tree.cut + " stacks too deep or too many to show whole");
		ui.note.textContent = [parts.join(", "), ...hint()].join(". ");
	}

	// ---------------------------------------------------------- the controls

	function choice(options, label, chosen) {
		const select = make("select", undefined, { "aria-label": label });
		for (const [value, text] of options) {
			const option = make("option", text, { value });
			option.selected = value === chosen;
			select.append(option);
		}
		select.addEventListener("change", choose);
		return select;
	}

	// A kind of the address without a profile is a choice, too: another kind in its place would mislead.
	function typeChoice() {
		const listed = document.querySelectorAll("#profiles tbody td:nth-child(2)");
		const kinds = new Set(Array.from(listed, (cell) => cell.textContent));
		const options = [];

		for (const kind of Object.keys(KINDS))
			if (kinds.has(kind) || !kinds.size || kind === wanted.get("kind"))
				for (const [type, text] of KINDS[kind])
					options.push([kind + "/" + type, text]);
		const kind = wanted.get("kind") || "cpu";
		const chosen = options.find(([value]) => value === kind + "/" + wanted.get("type")) ||
			options.find(([value]) => value.startsWith(kind + "/"));
		return choice(options, "What to show", chosen && chosen[0]);
	}

	function spanChoice() {
		const options = (range ? [["one", "The chosen profile"]] : []).concat(SPANS);
		const minutes = wanted.get("minutes");
		const chosen = options.find(([value]) => value === minutes && value !== "one");
		return choice(options, "Time", chosen ? minutes : wanted.has("from") || wanted.has("until") ? "one" : "60");
	}

	// The way back and forth in the browser's history.
	function goTo() {
		const type = ui.type, span = ui.span;

		readAddress();
		ui.type = typeChoice();
		ui.span = spanChoice();
		type.replaceWith(ui.type);
		span.replaceWith(ui.span);
		load();
	}

	function button(text, act) {
		const made = make("button", text, { type: "button" });
		made.addEventListener("click", act);
		return made;
	}

	// A click hides or shows the functions of a kind.
	function kindButton(kind) {
		const made = button(COLOUR_NAMES[kind], () => {
			if (!hidden.delete(kind))
				hidden.add(kind);
			made.setAttribute("aria-pressed", String(!hidden.has(kind)));
			wanted.delete("without");
			if (hidden.size)
				wanted.set("without", Array.from(hidden).join(","));
			history.replaceState(null, "", here());
			showKinds();
		});
		const box = make("i");

		box.style.backgroundColor = "hsl(" + COLOURS[kind][0] + " " + COLOURS[kind][1] + "% " +
			(dark.matches ? 60 : 72) + "%)";
		made.prepend(box);
		made.title = "show or hide these functions";
		made.setAttribute("aria-pressed", String(!hidden.has(kind)));
		return made;
	}

	// The kinds in the tree; "no name" has the remainders that the agent adds up, and stays.
	function listKinds() {
		const present = new Set(whole.kinds);

		ui.kinds.replaceChildren(...Object.keys(COLOUR_NAMES)
			.filter((kind) => kind !== "unknown" && present.has(kind)).map(kindButton));
	}

	function listen() {
		ui.graph.addEventListener("click", (event) => {
			const i = event.target.dataset.node;
			if (i !== undefined)
				zoomTo(Number(i));
		});
		ui.graph.addEventListener("mouseover", (event) => {
			const i = event.target.dataset.node;
			if (i !== undefined)
				tell(Number(i));
		});
		ui.graph.addEventListener("keydown", onKey);
		ui.search.addEventListener("input", () => tree && mark());
		window.addEventListener("resize", () => tree && draw());
		window.addEventListener("popstate", goTo);
		dark.addEventListener("change", () => {
			if (!tree)
				return;
			listKinds();
			draw();
		});
	}

	function start() {
		const bar = make("div", undefined, { class: "bar" });

		readAddress();
		ui.flip = false;
		ui.type = typeChoice();
		ui.span = spanChoice();
		ui.search = make("input", undefined, { type: "search", placeholder: "Search functions",
			"aria-label": "Search functions", title: "a part of a name, \"a whole name\", or kind:kernel" });
		ui.found = make("span", "", { class: "dim", "aria-live": "polite" });
		ui.reset = button("Reset zoom", () => zoomTo(0));
		ui.reset.disabled = true;
		ui.turn = button("Root at the bottom", () => {
			ui.flip = !ui.flip;
			ui.turn.textContent = ui.flip ? "Root at the top" : "Root at the bottom";
			if (tree)
				draw();
		});
		ui.graph = make("div", undefined, { class: "graph", role: "group", "aria-label":
			"Flame graph; arrow keys move, Enter zooms, Escape zooms out" });
		ui.about = make("p", "", { class: "about", "aria-live": "polite" });
		ui.note = make("span", "", { class: "dim" });
		ui.kinds = make("span", undefined, { class: "legend", role: "group", "aria-label": "Kinds of functions" });
		ui.table = make("table", undefined, { class: "functions" });
		bar.append(ui.type, ui.span, ui.search, ui.found, ui.reset, ui.turn, ui.note, ui.kinds);
		const list = make("div", undefined, { class: "scroll tall" });
		list.append(ui.table);
		ui.list = make("div");
		ui.list.append(make("h2", "Functions by their own use"), list);
		section.replaceChildren(bar, ui.about, ui.graph, ui.list);
		listen();
		load();
	}

	start();
})();
