// SPDX-License-Identifier: Apache-2.0
// As much of a browser as the page's scripts use: elements without layout, and a document made of them.
"use strict";
const fs = require("fs");
const path = require("path");
const vm = require("vm");

class Classes {
	constructor() { this.names = new Set(); }
	toggle(name, on) { this.names[on ? "add" : "delete"](name); }
	contains(name) { return this.names.has(name); }
}

class Element {
	constructor(tag) {
		Object.assign(this, { tag, children: [], text: "", attributes: {}, dataset: {}, style: {}, listeners: {},
			value: "", hidden: false, disabled: false, clientWidth: 1000, classList: new Classes(), parent: null });
	}
	get textContent() { return this.text + this.children.map((child) => child.textContent).join(""); }
	set textContent(text) { this.replaceChildren(...(text === "" ? [] : [text])); }
	get className() { return this.attributes.class || ""; }
	set className(names) { this.attributes.class = names; }
	get id() { return this.attributes.id; }
	setAttribute(name, value) { this.attributes[name] = String(value); if (name === "value") this.value = value; }
	removeAttribute(name) { delete this.attributes[name]; }
	getAttribute(name) { return name in this.attributes ? this.attributes[name] : null; }
	addEventListener(name, act) { (this.listeners[name] ||= []).push(act); }
	dispatch(name, event) { for (const act of this.listeners[name] || []) act({ target: this, preventDefault() {}, ...event }); }
	click() { if (!this.disabled) this.dispatch("click"); }
	focus() {}
	nodes(children) {
		return children.map((child) => {
			const node = child instanceof Element ? child : Object.assign(new Element("#text"), { text: String(child) });
			if (node.parent)
				node.parent.children = node.parent.children.filter((other) => other !== node);
			node.parent = this;
			return node;
		});
	}
	append(...children) {
		const added = this.nodes(children);
		this.children.push(...added);
		if (this.tag === "select")
			this.value = (this.children.find((child) => child.selected) || this.children[0] || this).value;
	}
	prepend(...children) { this.replaceChildren(...children, ...this.children); }
	replaceChildren(...children) { this.children = []; this.append(...children); }
	replaceWith(other) {
		this.parent.children[this.parent.children.indexOf(this)] = other;
		other.parent = this.parent;
	}
	all() { return this.children.flatMap((child) => [child, ...child.all()]); }
	find(test) { return this.all().find(test); }
	// A tag, "#id", ".class" or "[name='value']"; querySelectorAll() also knows "#id tbody td:nth-child(2)".
	matches(what) {
		const [, name, value] = what.match(/^\[(\w+)='(.*)'\]$/) || [];

		if (name)
			return this.attributes[name] === value;
		return what[0] === "#" ? this.id === what.slice(1) : what[0] === "." ?
			this.className.split(" ").includes(what.slice(1)) : this.tag === what;
	}
	querySelectorAll(what) {
		const parts = what.split(" ");
		const [last, nth] = parts.pop().split(":nth-child(");
		const below = parts.reduce((roots, part) => roots.flatMap((root) =>
			root.all().filter((element) => element.matches(part))), [this]);
		return below.flatMap((root) => root.all()).filter((element) => element.matches(last) &&
			(!nth || element.parent.children.indexOf(element) === parseInt(nth, 10) - 1));
	}
	getElementsByClassName(name) { return this.querySelectorAll("." + name); }
	getElementById(id) { return this.find((element) => element.id === id) || null; }
	// of tables
	get tHead() { return this.find((element) => element.tag === "thead"); }
	get tBodies() { return this.children.filter((element) => element.tag === "tbody"); }
	get rows() { return this.children.filter((element) => element.tag === "tr"); }
	get cells() { return this.children; }
}

// h("p#id.class", child or text...)
function h(what, ...children) {
	const [, tag, id, names] = what.match(/^(\w+)(?:#(\w+))?(?:\.(.*))?$/);
	const element = new Element(tag);

	if (id)
		element.setAttribute("id", id);
	element.className = names || "";
	element.append(...children);
	return element;
}

// Run scripts of the page in a window whose document has these elements. @more: other globals. Gives the globals.
function run(scripts, body, more) {
	const document = Object.assign(h("html", body), {
		createElement: (tag) => new Element(tag), hidden: false, activeElement: null });
	const globals = { document, console, URLSearchParams, Date, Map, Set, setInterval() {},
		location: new URL("http://node/entity/e"), matchMedia: () => new Element("media"), ...more };
	const visited = [globals.location.href]; // of the tab; the last one is shown
	const show = () => { globals.location.href = visited[visited.length - 1]; };

	globals.window = new Element("window");
	globals.history = {
		replaceState(state, title, to) { visited.splice(-1, 1, new URL(to, globals.location).href); show(); },
		pushState(state, title, to) { visited.push(new URL(to, globals.location).href); show(); },
		back() { visited.pop(); show(); globals.window.dispatch("popstate"); } };
	vm.createContext(globals);
	for (const script of scripts)
		vm.runInContext(fs.readFileSync(path.join(__dirname, "../../../agent/server/assets", script), "utf8"), globals,
			{ filename: script });
	return globals;
}

// Let everything happen that has been answered.
const settle = () => new Promise((resolve) => setImmediate(resolve));

module.exports = { h, run, settle };
