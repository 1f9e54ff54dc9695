// SPDX-License-Identifier: Apache-2.0
// Works all the time in the innermost of so many functions, each with its own code. A second argument: so many functions
// to a script, in place of one.
'use strict';
const path = require('path');
const vm = require('vm');
const words = new Int32Array(1 << 20);
// Node 24 and later give the process the name MainThread.
process.title = path.basename(process.argv0);

function work() {
  let total = 0;
  for (let i = 0; i < words.length; i += 16)
    total += words[i]++ & 255;
  return total;
}

const [depth, perScript] = [Number(process.argv[2]), Number(process.argv[3] ?? 1)];
let outermost = work;
for (let n = 1; n <= depth; n += perScript) {
  const last = Math.min(n + perScript - 1, depth);
  let text = '(inner) => {';
  for (let i = n; i <= last; i++)
    text += ` function f${i}() { return ${i === n ? 'inner' : `f${i - 1}`}() + ${i}; }`;
  outermost = vm.runInThisContext(`${text} return f${last}; }`, {filename: `deep${Math.floor(n / perScript) % 8}.js`})(outermost);
}

for (let total = 0;;)
  total += outermost() & 1;
