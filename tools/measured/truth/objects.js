// SPDX-License-Identifier: MIT OR Apache-2.0
// A Map of KEYS objects by number, then LOOKUPS lookups, half of which find nothing.
"use strict";

const [keys, lookups] = process.argv.slice(2).map(Number);
const map = new Map();

for (let i = 0; i < keys; i++)
	map.set(i, { name: `object ${i}`, value: i });
let state = 1;
let found = 0;

for (let i = 0; i < lookups; i++) {
	/* Numerical Recipes' generator. */
	state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
	const object = map.get(state % (2 * keys));

	found += object ? object.value : 1;
}
console.log(found);
