// SPDX-License-Identifier: Apache-2.0
// The first page's table: sort by a column, filter, fold programs without samples in the last window, and stay fresh.
// All of it is there without us.
"use strict";

(function () {
	const table = document.getElementById("entities");
	const filter = document.getElementById("filter");
	const past = document.getElementById("past");
	const REFRESH_MS = 15000;
	const heads = table ? Array.from(table.tHead.rows[0].cells) : [];
	let column = 2;
	let descending = true;
	let folded = true;

	function value(row) {
		const cell = row.cells[column];
		return "v" in cell.dataset ? Number(cell.dataset.v) : cell.textContent.toLowerCase();
	}

	function sort() {
		const body = table.tBodies[0];
		const rows = Array.from(body.rows);
		const order = descending ? -1 : 1;

		rows.sort(function (a, b) {
			const x = value(a), y = value(b);
			return x < y ? -order : x > y ? order : 0;
		});
		body.append(...rows);
		heads.forEach(function (head, i) {
			if (i === column)
				head.setAttribute("aria-sort", descending ? "descending" : "ascending");
			else
				head.removeAttribute("aria-sort");
		});
	}

	// Every word has to be somewhere in the row. The filter looks at folded rows, too.
	function applyFilter() {
		const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
		const count = table.getElementsByClassName("past").length;

		for (const row of table.tBodies[0].rows) {
			const text = row.textContent.toLowerCase();
			row.hidden = !words.every((word) => text.includes(word));
		}
		table.classList.toggle("folded", folded && !words.length);
		past.hidden = !count || words.length > 0;
		past.textContent = `${folded ? "Show" : "Hide"} ${count} without samples in this window`;
	}

	// The page as it is now, from which the new rows and what the page says about them are taken over.
	async function refresh() {
		if (document.hidden)
			return;
		try {
			const reply = await fetch("/");
			if (!reply.ok)
				return;
			const page = new DOMParser().parseFromString(await reply.text(), "text/html");
			const focused = document.activeElement && document.activeElement.getAttribute("href");
			table.tBodies[0].replaceWith(page.getElementById("entities").tBodies[0]);
			for (const id of ["summary", "none"])
				document.getElementById(id).replaceWith(page.getElementById(id));
			sort();
			applyFilter();
			if (focused)
				for (const link of table.querySelectorAll("a"))
					if (link.getAttribute("href") === focused)
						link.focus();
		} catch (error) {
			// the agent is restarting; the next round will tell
		}
	}

	function start() {
		heads.forEach(function (head, i) {
			const button = document.createElement("button");
			button.type = "button";
			button.textContent = head.textContent;
			button.addEventListener("click", function () {
				descending = column === i ? !descending : i >= 2;
				column = i;
				sort();
			});
			head.replaceChildren(button);
		});
		filter.hidden = false;
		filter.addEventListener("input", applyFilter);
		past.addEventListener("click", function () {
			folded = !folded;
			applyFilter();
		});
		applyFilter();
		setInterval(refresh, REFRESH_MS);
	}

	if (table)
		start();
})();
