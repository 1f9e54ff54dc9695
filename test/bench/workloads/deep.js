// SPDX-License-Identifier: Apache-2.0
// Works all the time in the innermost of so many functions, each with its own code.
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

let outermost = work;
for (let n = 1; n <= Number(process.argv[2]); n++)
  outermost = vm.runInThisContext(`(inner) => function f${n}() { return inner() + ${n}; }`,
                                  {filename: `deep${n % 8}.js`})(outermost);

for (let total = 0;;)
  total += outermost() & 1;
