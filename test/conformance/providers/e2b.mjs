// E2B: e2b, the newest version and an old one

import assert from 'node:assert/strict';

import * as newest from 'e2b';
import * as old from 'e2b-2.35';

import { fault, origin, requestsDuring, withQuota, withSettings } from '../emulator.mjs';
import {
	everyByte, longScript, noise, open, runScenario, testNothingLeft, testWithBox, title,
	waitingScript,
} from '../scenario.mjs';
import { test } from '../tap.mjs';

// A script is an argument of a shell, and Linux takes none of more than 128 KiB.
const LONGEST_ARGUMENT = 128 * 1024;

// What the client tells by returning false.
class Gone extends Error {}

async function collect(pages) {
	const all = [];
	while (pages.hasNext)
		all.push(...await pages.nextItems());
	return all;
}

function arrayBuffer(bytes) {
	return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
}

// A command in the background, and what has been heard of it.
class Job {
	constructor() {
		this.early = [];
		this.heard = (text) => this.early.push(text);
	}

	follow(heard) {
		this.heard = heard;
		this.early.splice(0).forEach(heard);
		return this.ended;
	}
}

class Client {
	constructor(sdk, key) {
		this.sdk = sdk;
		this.options = {
			apiKey: key,
			validateApiKey: false,
			apiUrl: `${origin}/e2b`,
			sandboxUrl: `${origin}/e2b-envd`,
		};
	}

	async create({ labels, env, template = 'base', ...more } = {}) {
		const box = await this.sdk.Sandbox.create(template,
			{ ...this.options, metadata: labels, envs: env, ...more });
		return Object.defineProperty(box, 'id', { value: box.sandboxId });
	}

	list(query) {
		return this.sdk.Sandbox.list({ ...this.options, ...query });
	}

	async find(labels) {
		const query = Object.keys(labels).length > 0 ? { metadata: labels } : undefined;
		return (await collect(this.list({ query }))).map((box) => box.sandboxId);
	}

	async exists(id) {
		try {
			await this.sdk.Sandbox.getInfo(id, this.options);
			return true;
		} catch (error) {
			if (error instanceof this.sdk.NotFoundError)
				return false;
			throw error;
		}
	}

	async runApart(box, script, { env, cwd, timeout } = {}) {
		let command = script;
		if (script.length >= LONGEST_ARGUMENT) {
			await box.files.write('/tmp/script', script);
			command = 'bash /tmp/script';
		}
		try {
			const { stdout, stderr, exitCode } = await box.commands.run(command,
				{ envs: env, cwd, timeoutMs: timeout && timeout * 1000 });
			return { stdout, stderr, exitCode };
		} catch (error) {
			if (!(error instanceof this.sdk.CommandExitError))
				throw error;
			return { stdout: error.stdout, stderr: error.stderr, exitCode: error.exitCode };
		}
	}

	async run(box, script, options) {
		const { stdout, stderr, exitCode } = await this.runApart(box, script, options);
		return { output: stdout + stderr, exitCode };
	}

	async start(box, script) {
		const job = new Job();
		job.handle = await box.commands.run(script, {
			background: true,
			timeoutMs: 0,
			onStdout: (text) => job.heard(text),
			onStderr: (text) => job.heard(text),
		});
		job.ended = job.handle.wait()
			.catch((error) => {
				if (!(error instanceof this.sdk.CommandExitError))
					throw error;
				return error;
			})
			.then(({ stdout, stderr }) => ({ stdout, stderr }));
		job.ended.catch(() => {});
		return job;
	}

	async status(box, { handle }) {
		return handle.exitCode;
	}

	async logs(box, { handle }) {
		return { stdout: handle.stdout, stderr: handle.stderr };
	}

	follow(box, job, heard) {
		return job.follow(heard);
	}

	upload(box, path, bytes) {
		return box.files.write(path, arrayBuffer(bytes));
	}

	async download(box, path) {
		return Buffer.from(await box.files.read(path, { format: 'bytes' }));
	}

	home() {
		return '/home/user';
	}

	async stop(box) {
		assert.equal(await box.pause(), true);
	}

	resume(box) {
		return this.sdk.Sandbox.connect(box.id, this.options);
	}

	async destroy(box) {
		if (!await this.sdk.Sandbox.kill(box.id, this.options))
			throw new Gone();
	}

	async close() {}
}

function driverOf(sdk, version) {
	return {
		name: 'e2b',
		title: `e2b ${version}`,
		sdk,
		gone: sdk.SandboxNotFoundError ?? sdk.NotFoundError,
		connect: (key) => new Client(sdk, key),
		errors: {
			refused: sdk.AuthenticationError,
			denied: (error) => error instanceof sdk.SandboxError && /^403: /.test(error.message),
			limited: sdk.RateLimitError,
			timeout: sdk.TimeoutError,
			gone: Gone,
			missing: sdk.FileNotFoundError,
		},
	};
}

// Creating

async function testCreate(driver, paths) {
	await test(`${title(driver)}: the requests of a life`, async () => {
		const client = open(driver, 'paths');
		const requests = await requestsDuring(async () => {
			const box = await client.create({ labels: { a: '1' } });
			await client.stop(box);
			await client.resume(box);
			await client.destroy(box);
		});
		assert.deepEqual(requests.map((one) =>
			`${one.method} ${one.path.replace(/\/i[a-z0-9]{20}/, '/ID')}`), paths);
		assert.equal(requests[0].headers['x-api-key'], '***');
	});
	await testWithBox(driver, 'create: what a sandbox is told to be', async (client, box) => {
		const info = await box.getInfo();
		assert.equal(info.name, 'base');
		assert.equal(info.state, 'running');
		assert.deepEqual(info.metadata, { 'a b&c=d/é': '100%', plain: 'x' });
		assert.deepEqual([info.cpuCount, info.memoryMB], [2, 512]);
		const left = info.endAt - Date.now();
		assert.ok(left > 500_000 && left <= 600_000, `${left}`);
		await box.setTimeout(3_000_000);
		assert.ok((await box.getInfo()).endAt - Date.now() > 2_000_000);
	}, { labels: { 'a b&c=d/é': '100%', plain: 'x' }, timeoutMs: 600_000 });
	await test(`${title(driver)}: a lifetime of two seconds`, async () => {
		const client = open(driver, 'lifetime');
		const box = await client.create({ timeoutMs: 2000 });
		assert.equal(await box.isRunning(), true);
		while (await box.isRunning());
		assert.equal(await client.exists(box.id), false);
		await assert.rejects(client.run(box, 'true'), driver.gone);
	});
	await test(`${title(driver)}: a lifetime that ends with a pause`, async () => {
		const client = open(driver, 'pausing');
		const box = await client.create({ timeoutMs: 2000, lifecycle: { onTimeout: 'pause' } });
		while (await box.isRunning());
		assert.equal((await box.getInfo()).state, 'paused');
		await client.destroy(box);
	});
}

async function testCreateRefused(driver, retries) {
	const client = open(driver, 'refused');
	await test(`${title(driver)}: create from an unknown template`, async () => {
		await assert.rejects(client.create({ template: 'no-such-template' }),
			(error) => error instanceof driver.sdk.SandboxError && /^404: /.test(error.message));
		assert.deepEqual(await client.find({}), []);
	});
	await test(`${title(driver)}: create above the quota`, async () => {
		const requests = await requestsDuring(() => withQuota('e2b', { sandboxes: 1 }, async () => {
			const box = await client.create();
			await assert.rejects(client.create(), driver.sdk.RateLimitError);
			await client.destroy(box);
		}));
		assert.equal(requests.filter((one) => one.op === 'create').length, 2);
	});
	await test(`${title(driver)}: create at a rate limit`, async () => {
		await fault({ provider: 'e2b', op: 'create', action: 'status', status: 429 });
		const requests = await requestsDuring(async () => {
			if (retries)
				await client.destroy(await client.create());
			else
				await assert.rejects(client.create(), driver.sdk.RateLimitError);
		});
		assert.equal(requests.filter((one) => one.op === 'create').length, retries ? 2 : 1);
	});
	await test(`${title(driver)}: create without a place for it`, async () => {
		await fault({
			provider: 'e2b', op: 'create', action: 'status', status: 503,
			body: { code: 503, message: 'no room', error_code: 'sandbox_capacity_unavailable' },
		});
		await assert.rejects(client.create(), driver.sdk.ServiceBusyError ?? driver.sdk.SandboxError);
		assert.deepEqual(await client.find({}), []);
	});
}

// Listing

async function testList(driver) {
	await test(`${title(driver)}: list in pages`, async () => {
		const client = open(driver, 'pages');
		const odd = { 'app name': 'a b&c=d/é', k: '100%+' };
		const made = [];
		for (let i = 0; i < 5; i++)
			made.push(await client.create({ labels: { ...odd, page: `${i}` } }));
		const other = await client.create({ labels: { ...odd, k: '100%' } });
		let listed;
		const requests = await requestsDuring(async () => {
			listed = await collect(client.list({ query: { metadata: odd }, limit: 2 }));
		});
		assert.deepEqual(listed.map((box) => box.metadata.page), ['4', '3', '2', '1', '0']);
		assert.equal(requests.length, 3);
		await made[3].pause();
		const paused = await collect(client.list({ query: { state: ['paused'] } }));
		assert.deepEqual(paused.map((box) => box.sandboxId), [made[3].id]);
		const running = await collect(client.list({ query: { metadata: odd, state: ['running'] } }));
		assert.equal(running.length, 4);
		assert.equal((await client.find({})).length, 6);
		for (const box of [...made, other])
			await client.destroy(box);
		assert.deepEqual(await client.find({}), []);
	});
	await test(`${title(driver)}: a list that lags behind`, async () => {
		const client = open(driver, 'lag');
		await withSettings('e2b', { listLagMs: 600_000 }, async () => {
			const box = await client.create();
			assert.deepEqual(await client.find({}), []);
			assert.equal(await client.exists(box.id), true);
			await client.destroy(box);
		});
	});
}

// Commands

// Until it has said something.
function begun(job) {
	return new Promise((resolve) => { job.follow(resolve); });
}

async function testCommands(driver) {
	const { sdk } = driver;
	await testWithBox(driver, 'command: what is not run', async (client, box) => {
		await assert.rejects(client.run(box, 'true', { cwd: '/nowhere' }), sdk.InvalidArgumentError);
		await assert.rejects(box.commands.run('true', { user: 'nobody' }), sdk.AuthenticationError);
		await assert.rejects(box.commands.run(longScript(LONGEST_ARGUMENT, 'true')),
			sdk.InvalidArgumentError);
		assert.equal((await box.commands.run('echo $USER', { user: 'root' })).stdout, 'root\n');
		const long = longScript(LONGEST_ARGUMENT - 200, 'echo end');
		assert.equal((await box.commands.run(long)).stdout, 'end\n');
	});
	await testWithBox(driver, 'command: ended by a signal', async (client, box) => {
		await assert.rejects(box.commands.run('echo a; kill -9 $$'),
			(error) => error instanceof sdk.CommandExitError && error.exitCode === -1 &&
				error.stdout === 'a\n' && error.error === 'signal: killed');
	});
	await testWithBox(driver, 'command: characters that are cut in two', async (client, box) => {
		const { stdout } = await box.commands.run('for i in $(seq 40000); do printf "xü€😀"; done');
		assert.equal(stdout, 'xü€😀'.repeat(40000));
	});
	await testWithBox(driver, 'command: listed, killed, killed again', async (client, box) => {
		const job = await client.start(box, 'exec sleep 600');
		const { pid } = job.handle;
		const listed = await box.commands.list();
		assert.deepEqual(listed,
			[{ pid, cmd: '/bin/bash', args: ['-l', '-c', 'exec sleep 600'], envs: {} }]);
		assert.equal(await box.commands.kill(pid), true);
		await client.follow(box, job, () => {});
		assert.equal(await client.status(box, job), -1);
		assert.equal(await box.commands.kill(pid), false);
		assert.deepEqual(await box.commands.list(), []);
	});
	await testWithBox(driver, 'command: left and watched again', async (client, box) => {
		const job = await client.start(box, waitingScript('/tmp/go', 'echo before', 'echo after; exit 6'));
		const { pid } = job.handle;
		await begun(job);
		await job.handle.disconnect();
		const again = await box.commands.connect(pid);
		await client.run(box, 'touch /tmp/go');
		await assert.rejects(again.wait(),
			(error) => error.exitCode === 6 && error.stdout === 'after\n');
		await assert.rejects((await box.commands.connect(pid)).wait(), (error) => error.exitCode === 6);
		await assert.rejects(box.commands.connect(99999), sdk.NotFoundError);
	});
	await testWithBox(driver, 'command: input', async (client, box) => {
		const handle = await box.commands.run('read line; echo "got $line"; cat',
			{ background: true, stdin: true });
		await box.commands.sendStdin(handle.pid, 'ü\nmore');
		await box.commands.closeStdin(handle.pid);
		assert.equal((await handle.wait()).stdout, 'got ü\nmore');
		await assert.rejects(box.commands.sendStdin(handle.pid, 'late'), sdk.NotFoundError);
	});
	await testWithBox(driver, 'command: goes on after a pause', async (client, box) => {
		const job = await client.start(box, waitingScript('/tmp/go', 'echo before', 'echo after'));
		const { pid } = job.handle;
		await begun(job);
		await client.stop(box);
		await assert.rejects(client.follow(box, job, () => {}));
		assert.equal(await box.pause(), false);
		await client.resume(box);
		const again = await box.commands.connect(pid);
		await client.run(box, 'touch /tmp/go');
		assert.equal((await again.wait()).stdout, 'after\n');
	});
	await testWithBox(driver, 'command: ends with its sandbox', async (client, box) => {
		const job = await client.start(box, 'sleep 600');
		await client.destroy(box);
		await assert.rejects(client.follow(box, job, () => {}), sdk.TimeoutError);
		await assert.rejects(client.run(box, 'true'), driver.gone);
		await assert.rejects(client.resume(box), driver.gone);
	});
	await testWithBox(driver, 'command: an answer that is cut off', async (client, box) => {
		await fault({ provider: 'e2b', op: 'run', action: 'truncate', bytes: 60 });
		await assert.rejects(client.run(box, 'echo text'));
		assert.equal((await client.run(box, 'echo text')).output, 'text\n');
	});
}

// Files

async function testFiles(driver) {
	const { sdk } = driver;
	await testWithBox(driver, 'files: raw, packed, as text and as a stream', async (client, box) => {
		const bytes = noise(3_000_001);
		await box.files.write('/tmp/raw', arrayBuffer(bytes), { useOctetStream: true });
		assert.ok((await client.download(box, '/tmp/raw')).equals(bytes));
		await box.files.write('/tmp/packed', arrayBuffer(bytes), { gzip: true });
		const packed = await box.files.read('/tmp/packed', { format: 'bytes', gzip: true });
		assert.ok(Buffer.from(packed).equals(bytes));
		await box.files.write('text', 'ü\n');
		assert.equal(await box.files.read('/home/user/text'), 'ü\n');
		const pieces = [];
		for await (const piece of await box.files.read('/tmp/raw', { format: 'stream' }))
			pieces.push(piece);
		assert.ok(Buffer.concat(pieces).equals(bytes));
	});
	await testWithBox(driver, 'files: several at once', async (client, box) => {
		const written = await box.files.write([
			{ path: '/tmp/a/one file', data: arrayBuffer(everyByte) },
			{ path: '/tmp/b/ü', data: 'two' },
		]);
		assert.deepEqual(written.map((one) => one.path), ['/tmp/a/one file', '/tmp/b/ü']);
		assert.deepEqual(await client.download(box, '/tmp/a/one file'), everyByte);
		assert.equal(await box.files.read('/tmp/b/ü'), 'two');
	});
	await testWithBox(driver, 'files: looked at, moved, removed', async (client, box) => {
		await box.files.write('/tmp/d/file', '12345');
		const info = await box.files.getInfo('/tmp/d/file');
		assert.deepEqual([info.name, info.type, info.size, info.permissions],
			['file', 'file', 5, '-rw-r--r--']);
		assert.equal(await box.files.makeDir('/tmp/d/e/f'), true);
		assert.equal(await box.files.makeDir('/tmp/d/e/f'), false);
		const names = async (depth) =>
			(await box.files.list('/tmp/d', { depth })).map((one) => `${one.type} ${one.name}`).sort();
		assert.deepEqual(await names(1), ['dir e', 'file file']);
		assert.deepEqual(await names(2), ['dir e', 'dir f', 'file file']);
		assert.equal((await box.files.rename('/tmp/d/file', '/tmp/d/moved')).path, '/tmp/d/moved');
		assert.equal(await box.files.exists('/tmp/d/file'), false);
		assert.equal(await box.files.exists('/tmp/d/moved'), true);
		await box.files.remove('/tmp/d');
		assert.equal(await box.files.exists('/tmp/d/moved'), false);
		await assert.rejects(box.files.list('/tmp/d'), sdk.FileNotFoundError);
		await assert.rejects(client.download(box, '/tmp'), sdk.InvalidArgumentError);
	});
}

async function testClient(driver, paths, retries) {
	await runScenario(driver);
	await testCreate(driver, paths);
	await testCreateRefused(driver, retries);
	await testList(driver);
	await testCommands(driver);
	await testFiles(driver);
	await testNothingLeft(driver);
}

export default async function () {
	await testClient(driverOf(newest, '2.51.0'), [
		'POST /e2b/v2/sandboxes',
		'POST /e2b/sandboxes/ID/pause',
		'POST /e2b/v2/sandboxes/ID/connect',
		'DELETE /e2b/sandboxes/ID',
	], true);
	await testClient(driverOf(old, '2.35.3'), [
		'POST /e2b/sandboxes',
		'POST /e2b/sandboxes/ID/pause',
		'POST /e2b/sandboxes/ID/connect',
		'DELETE /e2b/sandboxes/ID',
	], false);
}
