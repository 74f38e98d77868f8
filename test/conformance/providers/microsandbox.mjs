// Hosted Microsandbox: microsandbox, with its cloud backend

import assert from 'node:assert/strict';

import { fault, origin, requestsDuring, withQuota, withSettings } from '../emulator.mjs';
import {
	everyByte, longScript, noise, open, runScenario, testNothingLeft, testWithBox, waitingScript,
} from '../scenario.mjs';
import { test } from '../tap.mjs';

// The native part of the client is published for this kind of machine only.
const sdk = process.arch === 'x64' ? await import('microsandbox') : undefined;

// A script is an argument of a shell, and Linux takes none of more than 128 KiB.
const LONGEST_ARGUMENT = 128 * 1024;

// What a command that a signal ended has instead of an exit code.
const KILLED = -1;

const failed = (kind, text = '') => (error) => error instanceof sdk[kind] && error.message.includes(text);

const answered = (status) => failed('CloudHttpError', `cloud HTTP ${status}`);

// A command that the client follows from its start to its end.
class Job {
	constructor(handle) {
		this.said = { stdout: '', stderr: '' };
		this.hearing = () => {};
		this.done = this.listen(handle);
	}

	async listen(handle) {
		const rest = { stdout: new TextDecoder(), stderr: new TextDecoder() };
		for await (const event of handle) {
			if (event.kind === 'exited')
				this.exitCode = event.code;
			if (!(event.kind in rest))
				continue;
			this.said[event.kind] += rest[event.kind].decode(event.data, { stream: true });
			this.hearing(this.said[event.kind]);
		}
	}
}

class Client {
	constructor(apiKey) {
		this.backend = { kind: 'cloud', url: `${origin}/microsandbox`, apiKey };
		this.names = apiKey.slice(-60).replace(/^[^a-z0-9]+/i, '');
		this.made = 0;
	}

	// The client has one backend for all, which sandboxes keep when they are made.
	get sandboxes() {
		sdk.setDefaultBackend(this.backend);
		return sdk.Sandbox;
	}

	// A start gives another object of the client's, so there is one around it.
	async create({ labels, env, name = `${this.names}-${++this.made}`, image = 'alpine', how = (b) => b } = {}) {
		const sandbox = await how(this.sandboxes.builder(name).image(image)
			.labels(labels ?? {}).envs(env ?? {})).create();
		return { id: name, sandbox };
	}

	async find(labels) {
		const page = await this.sandboxes.listWith((list) => list.labels(labels).limit(100));
		return page.sandboxes.map(({ name }) => name);
	}

	get(id) {
		return this.sandboxes.get(id);
	}

	async exists(id) {
		try {
			await this.get(id);
			return true;
		} catch (error) {
			if (error instanceof sdk.SandboxNotFoundError)
				return false;
			throw error;
		}
	}

	async runApart(box, script, { env = {}, cwd, timeout } = {}) {
		let text = script;
		if (script.length >= LONGEST_ARGUMENT) {
			await this.upload(box, '/tmp/script', Buffer.from(script));
			text = '. /tmp/script';
		}
		const output = await box.sandbox.execWith('/bin/sh', (options) => {
			options.args(['-c', text]).envs(env);
			if (cwd)
				options.cwd(cwd);
			if (timeout)
				options.timeout(timeout * 1000);
			return options;
		});
		return { stdout: output.stdout(), stderr: output.stderr(), exitCode: output.code };
	}

	async run(box, script, options) {
		const { stdout, stderr, exitCode } = await this.runApart(box, script, options);
		return { output: stdout + stderr, exitCode };
	}

	async start(box, script) {
		return new Job(await box.sandbox.execStream('/bin/sh', ['-c', script]));
	}

	status(box, job) {
		return job.exitCode;
	}

	logs(box, job) {
		return job.said;
	}

	async follow(box, job, heard) {
		job.hearing = heard;
		if (job.said.stdout + job.said.stderr !== '')
			heard(job.said.stdout + job.said.stderr);
		await job.done;
		return job.said;
	}

	async upload(box, path, bytes) {
		await box.sandbox.fs().mkdir(path.slice(0, path.lastIndexOf('/')));
		await box.sandbox.fs().write(path, bytes);
	}

	async download(box, path) {
		return Buffer.from(await box.sandbox.fs().read(path));
	}

	// It does not look at the working directory of the image.
	home() {
		return '/';
	}

	stop(box) {
		return box.sandbox.stop();
	}

	async resume(box) {
		box.sandbox = await (await this.get(box.id)).start();
	}

	// By its id, whoever has the name by then.
	async destroy(box) {
		await (await this.get(box.id)).remove();
	}

	async close() {}
}

const driver = {
	name: 'microsandbox',
	connect: (key) => new Client(key),
	errors: {
		refused: answered(401),
		denied: answered(403),
		limited: answered(429),
		timeout: (error) => error instanceof sdk.ExecTimeoutError,
		gone: (error) => error instanceof sdk.SandboxNotFoundError,
		missing: failed('SandboxFsOpsError', 'No such file'),
	},
};

// How an answer looks before the client has made something of it.
function raw(client, path) {
	return fetch(`${origin}/microsandbox/v1${path}`, {
		headers: { authorization: `Bearer ${client.backend.apiKey}` },
	}).then((answer) => answer.json());
}

// Creating

async function testCreate() {
	await test('microsandbox: the requests of a life', async () => {
		const client = open(driver, 'paths');
		const requests = await requestsDuring(async () => {
			const box = await client.create({ name: 'a.b_c-1', labels: { a: '1' } });
			await client.runApart(box, 'true');
			await client.stop(box);
			await client.resume(box);
			await client.destroy(box);
		});
		const seen = requests.filter(({ op }) => op !== 'get')
			.map((one) => `${one.op} ${one.method} ${one.path.replace(/[0-9a-f-]{36}/, 'ID')}`);
		assert.deepEqual(seen, [
			'create POST /microsandbox/v1/sandboxes?start=true&wait_for=running&wait_timeout=90',
			'run GET /microsandbox/v1/sandboxes/ID/agent',
			'stop POST /microsandbox/v1/sandboxes/ID/stop',
			'start POST /microsandbox/v1/sandboxes/ID/start?wait_for=running&wait_timeout=90',
			'delete DELETE /microsandbox/v1/sandboxes/ID',
		]);
		assert.equal(requests[0].headers.authorization, 'Bearer ***');
		assert.match(requests[0].headers['user-agent'], /^microsandbox-sdk\//);
		assert.ok(requests.some(({ path }) => path === '/microsandbox/v1/sandboxes/by-name/a.b_c-1'));
	});
	await testWithBox(driver, 'create: what a sandbox is told to be', async (client, box) => {
		const shown = await raw(client, `/sandboxes/by-name/${box.id}`);
		assert.equal(`cloud:${shown.id}`, box.sandbox.id);
		assert.equal(shown.status, 'running');
		assert.deepEqual(shown.spec.labels, { 'a b&c=d/é': '100%' });
		assert.deepEqual(shown.spec.env, [{ key: 'A', value: 'x=y' }]);
		assert.deepEqual(shown.spec.resources, { vcpus: 2, memory_mib: 1024 });
		assert.deepEqual(shown.spec.lifecycle, { ephemeral: true, max_duration_secs: 3600, idle_timeout_secs: 600 });
		assert.equal(shown.spec.runtime.workdir, '/app');
		assert.equal(shown.spec.image, 'alpine');
		assert.equal((await client.run(box, 'pwd; echo $A')).output, '/app\nx=y\n');
		assert.equal((await client.get(box.id)).status, 'running');
	}, {
		labels: { 'a b&c=d/é': '100%' }, env: { A: 'x=y' },
		how: (builder) => builder.cpus(2).memory(1024).workdir('/app').ephemeral(true).maxDuration(3600).idleTimeout(600),
	});
}

async function testCreateRefused() {
	const client = open(driver, 'refused');
	await test('microsandbox: create with a name that is taken', async () => {
		const box = await client.create({ name: 'taken' });
		await assert.rejects(client.create({ name: 'taken' }), failed('SandboxAlreadyExistsError'));
		await client.destroy(box);
		await client.create({ name: 'taken' });
		await client.sandboxes.remove('taken');
	});
	await test('microsandbox: create that fails leaves a sandbox', async () => {
		await assert.rejects(client.create({ name: 'pull', image: 'no-such-image' }), failed('RuntimeError', 'image pull failed'));
		assert.equal((await client.get('pull')).status, 'crashed');
		await client.destroy({ id: 'pull' });
	});
	await test('microsandbox: create without room leaves one that waits for it', async () => {
		await withSettings('microsandbox', { secondMs: 5 }, () => withQuota('microsandbox', { sandboxes: 0 }, () =>
			assert.rejects(client.create({ name: 'queued' }), failed('RuntimeError', 'did not reach running'))));
		while ((await client.get('queued')).status !== 'running');
		await client.destroy({ id: 'queued' });
	});
	await test('microsandbox: create where too many wait leaves one too', async () => {
		await withSettings('microsandbox', { startDelayMs: 600_000, waitMaximum: 0 }, () =>
			assert.rejects(client.create({ name: 'late' }), answered(429)));
		assert.equal((await raw(client, '/sandboxes/by-name/late')).status, 'starting');
		await client.destroy({ id: 'late' });
	});
	await test('microsandbox: create above the limit', async () => {
		await withSettings('microsandbox', { sandboxMaximum: 0 }, () =>
			assert.rejects(client.create(), answered(403)));
		assert.deepEqual(await client.find({}), []);
	});
	await test('microsandbox: create that is not heard of', async () => {
		await fault({ provider: 'microsandbox', op: 'create', action: 'reset-after-work' });
		await assert.rejects(client.create({ name: 'lost' }));
		await client.destroy({ id: 'lost' });
		assert.deepEqual(await client.find({}), []);
	});
}

async function testList() {
	await test('microsandbox: list in pages', async () => {
		const client = open(driver, 'list');
		const made = [];
		for (let i = 0; i < 5; i++)
			made.unshift(await client.create({ labels: { n: `${i}`, odd: `${i % 2}` } }));
		const seen = [];
		let cursor;
		do {
			const page = await client.sandboxes.listWith((list) => {
				list.limit(2).label('odd', '0');
				return cursor === undefined ? list : list.cursor(cursor);
			});
			assert.ok(page.sandboxes.length <= 2);
			seen.push(...page.sandboxes.map(({ name }) => name));
			cursor = page.nextCursor;
		} while (cursor !== undefined);
		assert.deepEqual(seen, [made[0].id, made[2].id, made[4].id]);
		for (const box of made)
			await client.destroy(box);
	});
}

async function testStates() {
	await testWithBox(driver, 'states: a kill there is not', async (client, box) => {
		const requests = await requestsDuring(() => assert.rejects(box.sandbox.kill(), failed('UnsupportedError')));
		assert.ok(requests.every(({ op }) => op === 'get'));
		assert.equal((await client.get(box.id)).status, 'running');
	});
	await testWithBox(driver, 'states: an ephemeral one is gone when it has stopped', async (client, box) => {
		await (await client.get(box.id)).requestStop();
		assert.equal(await client.exists(box.id), false);
	}, { how: (builder) => builder.ephemeral(true) });
	await testWithBox(driver, 'states: a stop that takes its time is waited for', (client, box) =>
		withSettings('microsandbox', { stopDelayMs: 300 }, async () => {
			await client.stop(box);
			assert.equal((await client.get(box.id)).status, 'stopped');
		}));
	await testWithBox(driver, 'states: an old handle does not touch a new sandbox', async (client, box) => {
		const old = box.sandbox;
		await client.destroy(box);
		box.sandbox = (await client.create({ name: box.id })).sandbox;
		await assert.rejects(old.stop());
		assert.equal((await client.get(box.id)).status, 'running');
	});
}

// Commands

async function testCommands() {
	await testWithBox(driver, 'command: that cannot be run', async (client, box) => {
		await assert.rejects(box.sandbox.exec('/no/such'), /No such file/);
		await assert.rejects(client.runApart(box, 'true', { cwd: '/etc/passwd' }), /Not a directory/);
		await assert.rejects(box.sandbox.exec('/bin/sh', ['-c', longScript(LONGEST_ARGUMENT, 'true')]), /too long/);
		assert.equal((await client.runApart(box, 'exit 127')).exitCode, 127);
	});
	await testWithBox(driver, 'command: its input', async (client, box) => {
		const given = await box.sandbox.execWith('/bin/cat', (options) => options.stdinBytes(everyByte));
		assert.deepEqual(Buffer.from(given.stdoutBytes()), everyByte);
		const handle = await box.sandbox.execStreamWith('/bin/cat', (options) => options.stdinPipe());
		const input = await handle.takeStdin();
		await input.write('one ');
		await input.write('two');
		await input.close();
		assert.equal((await handle.collect()).stdout(), 'one two');
	});
	await testWithBox(driver, 'command: a signal', async (client, box) => {
		const handle = await box.sandbox.execStream('/bin/sh', ['-c', 'echo ready; sleep 600']);
		let code;
		for await (const event of handle)
			if (event.kind === 'stdout')
				await handle.signal(15);
			else if (event.kind === 'exited')
				code = event.code;
		assert.equal(code, KILLED);
	});
	await testWithBox(driver, 'command: many at once', async (client, box) => {
		const all = await Promise.all(Array.from({ length: 8 }, (_, i) => client.run(box, `echo ${i}`)));
		assert.deepEqual(all.map(({ output }) => output), Array.from({ length: 8 }, (_, i) => `${i}\n`));
	});
	await testWithBox(driver, 'command: its end is lost', async (client, box) => {
		for (const action of ['truncate', 'reset-after-work', 'garbage', 'wrong-type', 'huge']) {
			await fault({ provider: 'microsandbox', frame: 'core.exec.exited', action });
			await assert.rejects(client.run(box, 'echo ran >>/tmp/ran'), failed('RuntimeError', 'without exit event'));
		}
		assert.equal((await client.run(box, 'wc -l </tmp/ran')).output.trim(), '5');
	});
	await testWithBox(driver, 'command: a connection that is lost ends it', async (client, box) => {
		await fault({ provider: 'microsandbox', frame: 'core.exec.stdout', action: 'truncate', bytes: 0 });
		await assert.rejects(client.run(box, 'echo $$ >/tmp/pid; echo up; sleep 600'), failed('RuntimeError'));
		await client.run(box, 'while kill -0 $(cat /tmp/pid) 2>/dev/null; do sleep 0.05; done');
	});
	await testWithBox(driver, 'command: no handshake', async (client, box) => {
		for (const action of ['truncate', 'reset-after-work', 'garbage', 'huge']) {
			await fault({ provider: 'microsandbox', frame: 'core.ready', action });
			await assert.rejects(client.run(box, 'touch /tmp/ran'));
		}
		await fault({ provider: 'microsandbox', op: 'run', action: 'status', status: 503 });
		await assert.rejects(client.run(box, 'touch /tmp/ran'), /503/);
		assert.equal((await client.runApart(box, 'test -e /tmp/ran')).exitCode, 1);
	});
}

async function testLogs() {
	await testWithBox(driver, 'logs: what commands write, until the end', async (client, box) => {
		const logs = await box.sandbox.logStream({ follow: true });
		const said = { stdout: '', stderr: '' };
		const all = (async () => {
			for await (const entry of logs)
				said[entry.source] += entry.text();
		})();
		while (said.stdout === '')
			await client.run(box, 'echo out; echo err >&2');
		await client.stop(box);
		await all;
		assert.match(said.stdout, /^(out\n)+$/);
		assert.match(said.stderr, /^(err\n)+$/);
	});
}

// However what the agent says is cut, it says the same.
async function testCuts() {
	const cuts = [
		{ messageBytes: 1 }, { messageBytes: 7 }, { fragmentBytes: 1 }, { fragmentBytes: 5, ping: true },
		{ segmentBytes: 5 }, { coalesce: true }, { coalesce: true, messageBytes: 100 }, { ping: true },
	];
	await testWithBox(driver, 'agent: frames, cut in every way', async (client, box) => {
		const bytes = noise(5000);
		for (const cut of cuts)
			await withSettings('microsandbox', cut, async () => {
				assert.deepEqual(await client.runApart(box, 'echo out; echo err >&2; exit 3'),
					{ stdout: 'out\n', stderr: 'err\n', exitCode: 3 });
				await client.upload(box, '/tmp/bytes', bytes);
				if (!cut.segmentBytes)
					assert.ok((await client.download(box, '/tmp/bytes')).equals(bytes), JSON.stringify(cut));
			});
	});
	await testWithBox(driver, 'agent: a pause in the middle of a frame', async (client, box) => {
		for (const frame of ['core.ready', 'core.exec.stdout', 'core.exec.exited'])
			for (let bytes = 0; bytes <= 10; bytes += 2) {
				await fault({ provider: 'microsandbox', frame, action: 'pause', bytes, ms: 20 });
				assert.equal((await client.run(box, 'echo text')).output, 'text\n');
			}
	});
}

// Files

async function testFiles() {
	await testWithBox(driver, 'files: what there is', async (client, box) => {
		const fs = box.sandbox.fs();
		await fs.mkdir('/tmp/a/b');
		await fs.write('/tmp/a/b/c', 'hello');
		assert.deepEqual((await fs.list('/tmp/a/b')).map(({ path, kind, size }) => [path, kind, size]),
			[['/tmp/a/b/c', 'file', 5]]);
		assert.equal((await fs.stat('/tmp/a')).kind, 'directory');
		assert.deepEqual([await fs.exists('/tmp/a/b/c'), await fs.exists('/tmp/a/b/d')], [true, false]);
		await fs.copy('/tmp/a/b/c', '/tmp/copy');
		await fs.rename('/tmp/copy', '/tmp/moved');
		assert.equal(await fs.readToString('/tmp/moved'), 'hello');
		await fs.remove('/tmp/moved');
		await fs.removeDir('/tmp/a');
		assert.deepEqual(await fs.list('/tmp'), []);
	});
	await testWithBox(driver, 'files: in a stream', async (client, box) => {
		const sink = await box.sandbox.fs().writeStream('/tmp/stream');
		await sink.write('one ');
		await sink.write('two');
		await sink.close();
		const stream = await box.sandbox.fs().readStream('/tmp/stream');
		assert.equal(Buffer.from(await stream.collect()).toString(), 'one two');
	});
	await testWithBox(driver, 'files: what cannot be', async (client, box) => {
		const fs = box.sandbox.fs();
		const refused = (promise, text) => assert.rejects(promise, failed('SandboxFsOpsError', text));
		await refused(fs.list('/tmp/none'), 'No such file');
		await refused(fs.read('/tmp'), 'Is a directory');
		await refused(fs.write('/usr/x', 'x'), 'Permission denied');
		await refused(fs.write('/tmp/none/x', 'x'), 'No such file');
		await refused(fs.remove('/tmp/none'), 'No such file');
	});
	await testWithBox(driver, 'files: while a script writes to one', async (client, box) => {
		const job = await client.start(box, waitingScript('/tmp/go', 'echo one >/tmp/log', 'echo two >>/tmp/log'));
		while (!await box.sandbox.fs().exists('/tmp/log'));
		await client.upload(box, '/tmp/go', Buffer.alloc(0));
		await job.done;
		assert.equal(await box.sandbox.fs().readToString('/tmp/log'), 'one\ntwo\n');
	});
}

export default async function () {
	if (sdk === undefined) {
		console.log('# microsandbox: the client is not published for this kind of machine');
		return;
	}
	await runScenario(driver);
	await testCreate();
	await testCreateRefused();
	await testList();
	await testStates();
	await testCommands();
	await testLogs();
	await testCuts();
	await testFiles();
	await testNothingLeft(driver);
}
