// What every provider's client must be able to do against the emulator.
//
// A provider's file describes its client by a driver:
//
//   name                   of the provider, as /_control/ knows it
//   title                  of the client, if there is more than one of that provider
//   connect(key)           a client with these functions:
//     create({labels, env})      a sandbox that is ready; has an id
//     find(labels)               ids of the sandboxes that have these labels
//     exists(id)
//     run(box, script, {env, cwd, timeout})   seconds; {output, exitCode}, where
//                                output has both streams
//     runApart(box, script)      {stdout, stderr, exitCode}
//     start(box, script)         in the background; whatever the next ones need
//     status(box, job)           the exit code, undefined while it runs
//     logs(box, job)             {stdout, stderr} so far
//     follow(box, job, heard)    the same when it has ended; heard(text) as it comes
//     upload(box, path, bytes)
//     download(box, path)        a Buffer
//     home(box)                  a directory
//     stop(box), start again: resume(box)
//     destroy(box)
//     close()                    ends the client
//   runWakes               whether run starts what is stopped, instead of failing
//   errors                 classes: refused, denied, limited, timeout, gone, missing
//                          (of a file)

import assert from 'node:assert/strict';

import { alive } from './emulator.mjs';
import { test } from './tap.mjs';

const KIB = 1024;
const MIB = 1024 * KIB;

// Bytes that look random and are the same in every run.
export function noise(length) {
	const bytes = Buffer.allocUnsafe(length);
	let state = 0x9e3779b9;
	for (let i = 0; i < length; i++) {
		state ^= state << 13;
		state ^= state >>> 17;
		state ^= state << 5;
		bytes[i] = state & 0xff;
	}
	return bytes;
}

export const everyByte = Buffer.from(Array.from({ length: 256 }, (_, i) => i));

// A script of at least this length that ends with `last`.
export function longScript(length, last) {
	const line = 'echo 0123456789012345678901234567890123456789 >/dev/null\n';
	return line.repeat(Math.ceil(length / line.length)) + last;
}

// A background script that says `before`, waits for a file, then says `after`.
export function waitingScript(file, before, after) {
	return `${before}; until [ -e ${file} ]; do sleep 0.05; done; ${after}`;
}

export function title(driver) {
	return driver.title ?? driver.name;
}

export function open(driver, purpose) {
	return driver.connect(`conformance-${title(driver)}-${purpose}`.replace(/ /g, '-'));
}

// One test with a client and a sandbox of its own, which are gone afterwards.
export function testWithBox(driver, name, body, launch = {}) {
	return test(`${title(driver)}: ${name}`, async () => {
		const client = open(driver, name.replace(/[^a-z0-9]+/gi, '-'));
		try {
			const box = await client.create(launch);
			try {
				await body(client, box);
			} finally {
				if (await client.exists(box.id))
					await client.destroy(box);
			}
		} finally {
			await client.close();
		}
	});
}

async function testLabels(driver) {
	await test(`${title(driver)}: create with labels, find by labels`, async () => {
		const client = open(driver, 'labels');
		const other = open(driver, 'labels-of-another');
		const one = await client.create({ labels: { run: '1', kind: 'a b' } });
		const two = await client.create({ labels: { run: '2', kind: 'a b' } });
		assert.deepEqual(await client.find({ run: '1' }), [one.id]);
		assert.deepEqual(
			(await client.find({ kind: 'a b' })).sort(),
			[one.id, two.id].sort());
		assert.deepEqual(await client.find({ run: '1', kind: 'c' }), []);
		assert.deepEqual(await client.find({ run: '3' }), []);
		assert.deepEqual(await other.find({ run: '1' }), []);
		await client.destroy(one);
		assert.deepEqual(await client.find({ kind: 'a b' }), [two.id]);
		await client.destroy(two);
		await client.close();
		await other.close();
	});
}

async function testRun(driver) {
	await testWithBox(driver, 'run: both streams and the exit code', async (client, box) => {
		const done = await client.run(box, 'echo out; echo err >&2; exit 3');
		assert.match(done.output, /out\n/);
		assert.match(done.output, /err\n/);
		assert.equal(done.exitCode, 3);
		assert.equal((await client.run(box, 'true')).exitCode, 0);
	});
	await testWithBox(driver, 'run: streams apart', async (client, box) => {
		assert.deepEqual(await client.runApart(box, 'echo out; echo ü >&2; (exit 7)'),
			{ stdout: 'out\n', stderr: 'ü\n', exitCode: 7 });
	});
	await testWithBox(driver, 'run: environment and directory', async (client, box) => {
		const script = 'pwd; echo "$OF_CREATE $OF_CALL"';
		const done = await client.run(box, script, { env: { OF_CALL: 'two $x\'"' }, cwd: '/tmp' });
		assert.equal(done.output, '/tmp\none two $x\'"\n');
		const next = await client.run(box, script);
		assert.equal(next.output, `${await client.home(box)}\none \n`);
	}, { env: { OF_CREATE: 'one' } });
	await testWithBox(driver, 'run: a timeout, and none before its time', async (client, box) => {
		await assert.rejects(client.run(box, 'sleep 600', { timeout: 1 }), driver.errors.timeout);
		const done = await client.run(box, 'sleep 0.1; echo fine', { timeout: 60 });
		assert.equal(done.output, 'fine\n');
	});
	await testWithBox(driver, 'run: a script of 300 KB', async (client, box) => {
		const done = await client.run(box, longScript(300 * KIB, 'echo end; exit 5'));
		assert.deepEqual([done.output, done.exitCode], ['end\n', 5]);
	});
	await testWithBox(driver, 'run: 1 MiB of output', async (client, box) => {
		const done = await client.run(box, 'head -c 1048576 /dev/zero | tr "\\0" x');
		assert.equal(done.output.length, MIB);
	});
}

async function testBackground(driver) {
	await testWithBox(driver, 'background: status and logs', async (client, box) => {
		const job = await client.start(box,
			waitingScript('/tmp/go', 'echo one', 'echo two >&2; (exit 4)'));
		assert.equal(await client.status(box, job), undefined);
		await client.run(box, 'touch /tmp/go');
		await client.follow(box, job, () => {});
		assert.equal(await client.status(box, job), 4);
		assert.deepEqual(await client.logs(box, job), { stdout: 'one\n', stderr: 'two\n' });
	});
	await testWithBox(driver, 'background: output as it comes', async (client, box) => {
		const job = await client.start(box,
			waitingScript('/tmp/go', 'echo before', 'echo after; echo ü >&2'));
		let hearing = () => {};
		const begun = new Promise((resolve) => { hearing = resolve; });
		let ended = false;
		const all = client.follow(box, job, hearing).finally(() => { ended = true; });
		assert.match(await begun, /before/);
		assert.equal(ended, false);
		await client.run(box, 'touch /tmp/go');
		assert.deepEqual(await all, { stdout: 'before\nafter\n', stderr: 'ü\n' });
	});
}

async function testFiles(driver) {
	await testWithBox(driver, 'files: every byte value', async (client, box) => {
		await client.upload(box, '/tmp/new/folder/bytes', everyByte);
		assert.deepEqual(await client.download(box, '/tmp/new/folder/bytes'), everyByte);
		const done = await client.run(box, 'wc -c </tmp/new/folder/bytes');
		assert.equal(Number(done.output), 256);
	});
	await testWithBox(driver, 'files: 9 MiB, and nothing', async (client, box) => {
		const bytes = noise(9 * MIB);
		await client.upload(box, '/tmp/large', bytes);
		assert.ok((await client.download(box, '/tmp/large')).equals(bytes));
		await client.upload(box, '/tmp/empty', Buffer.alloc(0));
		assert.equal((await client.download(box, '/tmp/empty')).length, 0);
	});
	await testWithBox(driver, 'files: one that is not there', async (client, box) => {
		await assert.rejects(client.download(box, '/tmp/nothing'), driver.errors.missing);
	});
}

async function testLifecycle(driver) {
	await testWithBox(driver, 'stop, start, destroy, gone', async (client, box) => {
		await client.upload(box, '/tmp/kept', Buffer.from('kept'));
		await client.stop(box);
		if (driver.runWakes)
			assert.equal((await client.run(box, 'true')).exitCode, 0);
		else
			await assert.rejects(client.run(box, 'true'));
		await client.resume(box);
		assert.equal((await client.run(box, 'cat /tmp/kept')).output, 'kept');
		assert.equal(await client.exists(box.id), true);
		await client.destroy(box);
		assert.equal(await client.exists(box.id), false);
		await assert.rejects(client.destroy(box), driver.errors.gone);
		await assert.rejects(client.run(box, 'true'));
	});
}

async function testRefusals(driver) {
	for (const [kind, key] of [['refused', 'bad'], ['denied', 'denied'], ['limited', 'limited']])
		await test(`${title(driver)}: a key that is ${kind}`, async () => {
			const client = driver.connect(`${key}-conformance`);
			await assert.rejects(client.create({}), driver.errors[kind]);
			await assert.rejects(client.find({}), driver.errors[kind]);
			await client.close();
		});
}

export async function runScenario(driver) {
	await testLabels(driver);
	await testRun(driver);
	await testBackground(driver);
	await testFiles(driver);
	await testLifecycle(driver);
	await testRefusals(driver);
}

// To be the last of a provider.
export async function testNothingLeft(driver) {
	await test(`${title(driver)}: no sandbox is left`, async () => {
		assert.deepEqual(await alive(driver.name), []);
	});
}
