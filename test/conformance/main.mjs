// The official clients of the providers, one after the other.

import { readdir } from 'node:fs/promises';

import { finish } from './tap.mjs';

const folder = new URL('./providers/', import.meta.url);

for (const file of (await readdir(folder)).sort())
	await (await import(new URL(file, folder))).default();
finish();
