// SPDX-License-Identifier: Apache-2.0
// A server of Fastify: JSON, sorting, a regular expression, SHA-256. Argument: the port.
'use strict';
const crypto = require('crypto');
const app = require('fastify')();

const articles = Array.from({length: 200}, (_, i) => ({name: `thing-${i}`, price: i * 37 % 101}));

function priceOf(article) {
  return article.price > 50 ? `${article.price} (dear)` : String(article.price);
}

function render(list) {
  return '<ul>' + list.map((a) => `<li>${a.name.toUpperCase()}: ${priceOf(a)}</li>`).join('') + '</ul>';
}

function depth(tree) {
  return tree.length < 2 ? 1 : 1 + Math.max(depth(tree.slice(0, tree.length >> 1)), depth(tree.slice(tree.length >> 1)));
}

app.get('/', async () => {
  const list = JSON.parse(JSON.stringify(articles)).filter((a) => a.price > 20);
  list.sort((a, b) => b.price - a.price || a.name.localeCompare(b.name));
  const page = render(list.slice(0, 40));
  const words = page.toLowerCase().match(/\w+-\d+/g);
  return {page, words, depth: depth(list), sum: crypto.createHash('sha256').update(page).digest('hex')};
});

app.listen({port: Number(process.argv[2]), host: '127.0.0.1'});
