// Freestyle: freestyle, the client of API v5

import assert from 'node:assert/strict';

import { Freestyle, FreestyleApiError } from 'freestyle';

import { alive, fault, origin, requestsDuring, withQuota, withSettings } from '../emulator.mjs';
import {
	everyByte, noise, open, runScenario, testNothingLeft, testWithBox, waitingScript,
} from '../scenario.mjs';
import { test } from '../tap.mjs';

// What a command may be at most; more goes by a file.
const LONGEST_COMMAND = 64 * 1024;

const INTERNET = { rules: [{ action: 'allow', source: {}, destination: { public: true } }] };

// What the client tells by no exit code.
class TimedOut extends Error {}

function answered(status, code) {
	return (error) => error instanceof FreestyleApiError && error.status === status &&
		(code === undefined || error.code === code);
}

function quoted(text) {
	return `'${text.replaceAll("'", "'\\''")}'`;
}

class Client {
	constructor(apiKey) {
		this.sdk = new Freestyle({ apiKey, baseUrl: `${origin}/freestyle` });
	}

	// A create takes no environment: what is to be there later, each command gets.
	async create({ labels, env, ...more } = {}) {
		const { vm, data, firewallRules } = await this.sdk.vms.create({
			metadata: labels, firewall: { rules: [] }, idleTimeoutSeconds: -1, ...more,
		});
		return { id: vm.id, vm, data, firewallRules, env };
	}

	async find(labels) {
		const metadata = Object.entries(labels).map((pair) => pair.join(':')).join(',');
		return (await this.list({ metadata: metadata || undefined })).map(({ id }) => id);
	}

	async list(query) {
		const all = [];
		for (;;) {
			const { vms, totalCount } = await this.sdk.vms.list({ ...query, offset: all.length });
			all.push(...vms);
			if (all.length === totalCount)
				return all;
		}
	}

	async exists(id) {
		try {
			await this.sdk.vms.get(id);
			return true;
		} catch (error) {
			if (answered(404, 'NOT_FOUND')(error))
				return false;
			throw error;
		}
	}

	async runApart({ vm, env: everywhere }, script, { env, cwd, timeout = 60 } = {}) {
		let command = cwd ? `cd ${quoted(cwd)} || exit $?\n${script}` : script;
		if (command.length > LONGEST_COMMAND) {
			await vm.fs.writeFile('/tmp/script', command);
			command = 'sh /tmp/script';
		}
		const { stdout, stderr, statusCode } = await vm.exec(
			{ command, env: { ...everywhere, ...env }, timeoutMs: timeout * 1000 });
		if (statusCode === null)
			throw new TimedOut();
		return { stdout, stderr, exitCode: statusCode };
	}

	async run(box, script, options) {
		const { stdout, stderr, exitCode } = await this.runApart(box, script, options);
		return { output: stdout + stderr, exitCode };
	}

	// There are no jobs: what goes on after its command, with its output in files.
	async start(box, script) {
		const job = `/tmp/job-${process.hrtime.bigint()}`;
		const run = `sh -c ${quoted(script)} >${job}.out 2>${job}.err; echo $? >${job}.new; mv ${job}.new ${job}.code`;
		await this.run(box, `: >${job}.out; : >${job}.err; nohup sh -c ${quoted(run)} >/dev/null 2>&1 &`);
		return job;
	}

	async status({ vm }, job) {
		return await vm.fs.exists(`${job}.code`) ?
			Number(await vm.fs.readTextFile(`${job}.code`)) : undefined;
	}

	async logs({ vm }, job) {
		return {
			stdout: await vm.fs.readTextFile(`${job}.out`),
			stderr: await vm.fs.readTextFile(`${job}.err`),
		};
	}

	async follow(box, job, heard) {
		let told = '';
		for (;;) {
			const ended = await this.status(box, job) !== undefined;
			const logs = await this.logs(box, job);
			if (logs.stdout.length > told.length)
				heard(logs.stdout.slice(told.length));
			told = logs.stdout;
			if (ended)
				return logs;
		}
	}

	async upload({ vm }, path, bytes) {
		await vm.fs.mkdir(path.replace(/\/[^/]*$/, ''));
		await vm.fs.writeFile(path, bytes);
	}

	async download({ vm }, path) {
		return Buffer.from(await vm.fs.readFile(path));
	}

	home() {
		return '/home/ubuntu';
	}

	stop({ vm }) {
		return vm.pause();
	}

	resume({ vm }) {
		return vm.start();
	}

	destroy({ vm }) {
		return vm.delete();
	}

	close() {}
}

const driver = {
	name: 'freestyle',
	connect: (key) => new Client(key),
	runWakes: true,
	errors: {
		refused: answered(401, 'INVALID_API_KEY'),
		denied: answered(403, 'FORBIDDEN'),
		limited: answered(429, 'RATE_LIMITED'),
		timeout: TimedOut,
		gone: answered(404, 'NOT_FOUND'),
		missing: answered(404, 'NOT_FOUND'),
	},
};

// Creating

async function testCreate() {
	const client = open(driver, 'create');
	await test('freestyle: create: what it says is what is', async () => {
		const box = await client.create({
			slug: 'sbx-0123', displayName: 'job 7', snapshotId: 'freestyle/ubuntu-sm',
			labels: { a: 'b c' }, ttlSeconds: 3600, automaticRestart: false, firewall: INTERNET,
		});
		assert.match(box.id, /^vm-[0-9a-f]{32}$/);
		const data = await client.sdk.vms.get('sbx-0123');
		assert.deepEqual([data.id, data.state, data.slug, data.displayName, data.resources, data.metadata],
			[box.id, 'running', 'sbx-0123', 'job 7', { cpu: 2, memory: 4096, storage: 16384 }, { a: 'b c' }]);
		assert.deepEqual([data.idleTimeoutSeconds, data.ttlSeconds, data.automaticRestart],
			[null, 3600, false]);
		assert.equal(box.firewallRules.length, 1);
		assert.deepEqual(box.firewallRules[0].source, { vmId: box.id });
		await client.destroy(box);
	});
	await test('freestyle: create answered 201', async () => {
		await withSettings('freestyle', { createStatus: 201 }, async () =>
			client.destroy(await client.create()));
	});
	await test('freestyle: create: what leaves no VM', async () => {
		const box = await client.create({ slug: 'taken' });
		await assert.rejects(client.create({ slug: 'taken' }), answered(409, 'CONFLICT'));
		await client.destroy(box);
		await client.destroy(await client.create({ slug: 'taken' }));
		for (const wrong of [{ slug: 'Bad_Slug' }, { slug: 'a--b' }, { labels: { a: 'x'.repeat(64) } },
			{ ttlSeconds: 0 }, { image: 'x' }])
			await assert.rejects(client.create(wrong), answered(400, 'BAD_REQUEST'));
		await client.destroy(await client.create({ labels: { a: 'ü'.repeat(63) } }));
		await assert.rejects(client.create({ snapshotId: 'no-such-snapshot' }), answered(404, 'NOT_FOUND'));
		await withQuota('freestyle', { sandboxes: 0 }, () =>
			assert.rejects(client.create({ slug: 'free' }), answered(409, 'CONFLICT')));
		await withSettings('freestyle', { allowanceSpent: true }, () =>
			assert.rejects(client.create(), answered(429, 'LIMIT_EXCEEDED')));
		assert.deepEqual(await client.find({}), []);
	});
	await test('freestyle: nothing is sent twice', async () => {
		for (const status of [429, 500, 502]) {
			await fault({ provider: 'freestyle', op: 'create', action: 'status', status });
			const requests = await requestsDuring(() => assert.rejects(client.create(), answered(status)));
			assert.equal(requests.length, 1);
		}
	});
}

// Answers in the background

async function testBackground() {
	const client = open(driver, 'background-answers');
	const always = { backgroundAfterMs: 0 };
	const polls = (requests) => requests.filter(({ op }) => op === 'status').length;
	await test('freestyle: background: every call', async () => {
		await withSettings('freestyle', always, async () => {
			const requests = await requestsDuring(async () => {
				const box = await client.create();
				assert.equal((await client.run(box, 'echo x; exit 3')).exitCode, 3);
				assert.deepEqual(await client.find({}), [box.id]);
				await client.destroy(box);
			});
			assert.equal(polls(requests), 4);
		});
	});
	await test('freestyle: background: stored errors are the call\'s own', async () => {
		await withSettings('freestyle', always, () =>
			assert.rejects(client.create({ snapshotId: 'no-such-one' }), answered(404, 'NOT_FOUND')));
		await withSettings('freestyle', { ...always, storedStatus: 503 }, async () => {
			const requests = await requestsDuring(() => assert.rejects(client.create(), answered(503)));
			assert.equal(polls(requests), 1);
		});
		await client.sdk.vms.delete((await client.find({}))[0]);
	});
	await test('freestyle: background: an error of the polling hop is not', async () => {
		const box = await client.create();
		await withSettings('freestyle', { ...always, backgroundOperations: 'run' }, async () => {
			await fault({ provider: 'freestyle', op: 'status', action: 'status', status: 503 });
			const requests = await requestsDuring(async () =>
				assert.equal((await client.run(box, 'echo x')).output, 'x\n'));
			assert.equal(polls(requests), 2);
			await fault({ provider: 'freestyle', op: 'status', action: 'status', status: 500 });
			await assert.rejects(client.run(box, 'true'), answered(500));
		});
		await client.destroy(box);
	});
	await test('freestyle: background: where the result is', async () => {
		const box = await client.create();
		for (const locators of ['resultUrl', 'header', 'requestId'])
			await withSettings('freestyle', { ...always, locators }, async () =>
				assert.equal((await client.run(box, 'echo x')).output, 'x\n'));
		await withSettings('freestyle', { ...always, locators: '' }, () =>
			assert.rejects(client.run(box, 'true'), answered(202, 'BACKGROUND_PROTOCOL_ERROR')));
		await client.destroy(box);
	});
	await test('freestyle: background: an answer that is too large to store', async () => {
		const box = await client.create();
		await withSettings('freestyle', { ...always, storedLimitBytes: 1000 }, async () => {
			await assert.rejects(client.run(box, 'head -c 1000 /dev/zero'),
				answered(500, 'BACKGROUND_RESULT_UNSTORABLE'));
			assert.equal((await client.run(box, 'echo x')).output, 'x\n');
		});
		await client.destroy(box);
	});
}

// Listing

async function testList() {
	await test('freestyle: list in pages, with filters and counts', async () => {
		const client = open(driver, 'pages');
		const made = [];
		for (let i = 0; i < 5; i++)
			made.push(await client.create({ slug: `vm-${i}`, labels: { odd: `${i % 2}`, all: 'a%&=+é' } }));
		const ids = (boxes) => boxes.map(({ id }) => id).sort();
		assert.deepEqual(ids(await client.list({ limit: 2 })), ids(made));
		assert.deepEqual(await client.find({ odd: '1', all: 'a%&=+é' }), [made[3].id, made[1].id]);
		assert.deepEqual(await client.find({ odd: '1', all: 'b' }), []);
		await made[0].vm.pause();
		const paused = await client.sdk.vms.list({ state: 'paused' });
		assert.deepEqual([paused.vms.map(({ id }) => id), paused.totalCount, paused.pausedCount, paused.runningCount],
			[[made[0].id], 1, 1, 0]);
		const even = await client.sdk.vms.list({ metadata: 'odd:0', limit: 1 });
		assert.deepEqual([even.vms.length, even.totalCount, even.pausedCount, even.runningCount], [1, 3, 1, 2]);
		assert.deepEqual((await client.list({ slug: 'vm-3' })).map(({ id }) => id), [made[3].id]);
		for (const box of made)
			await client.destroy(box);
		assert.deepEqual(await client.find({}), []);
	});
}

// Commands

async function testCommands() {
	await testWithBox(driver, 'command: users, input, the longest', async (client, { vm }) => {
		assert.equal((await vm.exec('echo $USER')).stdout, 'ubuntu\n');
		assert.equal((await vm.linuxUser('root').exec('echo $USER')).stdout, 'root\n');
		await assert.rejects(vm.linuxUser('nobody').exec('true'), answered(404, 'NOT_FOUND'));
		assert.equal((await vm.exec({ command: 'wc -c', stdin: everyByte.toString('base64') })).stdout, '256\n');
		assert.equal((await vm.exec(`#${'x'.repeat(LONGEST_COMMAND - 1)}`)).statusCode, 0);
		await assert.rejects(vm.exec(`#${'x'.repeat(LONGEST_COMMAND)}`), answered(400, 'BAD_REQUEST'));
	});
	await testWithBox(driver, 'command: a timeout leaves what was said', async (client, { vm }) => {
		const done = await vm.exec({ command: 'echo before; sleep 600; echo after', timeoutMs: 500 });
		assert.deepEqual([done.stdout, done.statusCode], ['before\n', null]);
		assert.equal((await vm.exec({ command: 'exit 3', timeoutMs: 60000 })).statusCode, 3);
	});
	await testWithBox(driver, 'command: an agent that is too old', async (client, { vm }) => {
		const long = { command: 'true', timeoutMs: 300001 };
		assert.equal((await vm.exec(long)).statusCode, 0);
		await withSettings('freestyle', { oldAgent: true }, () =>
			assert.rejects(vm.exec(long), answered(400, 'AGENT_UNSUPPORTED')));
	});
	await testWithBox(driver, 'command: power off is the only stop', async (client, { vm }) => {
		await vm.fs.writeFile('/tmp/kept', 'kept');
		await assert.rejects(vm.exec('poweroff'), answered(409, 'CONFLICT'));
		assert.equal((await vm.data()).state, 'stopped');
		await assert.rejects(vm.exec('true'), answered(409, 'CONFLICT'));
		assert.equal((await vm.start()).state, 'running');
		assert.equal(await vm.fs.readTextFile('/tmp/kept'), 'kept');
	});
	await testWithBox(driver, 'command: what is paused wakes, with its memory', async (client, box) => {
		const job = await client.start(box, waitingScript('/tmp/go', 'echo one', 'echo two'));
		assert.equal((await box.vm.pause()).state, 'paused');
		assert.equal((await box.vm.data()).state, 'paused');
		assert.equal((await client.run(box, 'touch /tmp/go')).exitCode, 0);
		assert.equal((await box.vm.data()).state, 'running');
		assert.equal((await client.follow(box, job, () => {})).stdout, 'one\ntwo\n');
	});
}

// Files

async function testFiles() {
	await testWithBox(driver, 'files: what there is', async (client, { vm }) => {
		const path = '/tmp/up load/ü+&#.bin';
		await vm.fs.mkdir('/tmp/up load');
		assert.equal(await vm.fs.exists(path), false);
		await vm.fs.writeFile(path, everyByte, { mode: 0o755 });
		await vm.exec('ln -s /tmp "/tmp/up load/link"; mkdir "/tmp/up load/folder"');
		assert.deepEqual((await vm.fs.readDir('/tmp/up load')).sort((a, b) => a.name < b.name ? -1 : 1), [
			{ name: 'folder', kind: 'directory' }, { name: 'link', kind: 'symlink' },
			{ name: 'ü+&#.bin', kind: 'file' },
		]);
		const { size, isFile, isDirectory, isSymlink, permissions, owner } = await vm.fs.stat(path);
		assert.deepEqual([size, isFile, isDirectory, isSymlink, permissions, owner],
			[256, true, false, false, '0755', 'ubuntu']);
		await vm.fs.writeFile(path, 'less');
		assert.deepEqual([await vm.fs.readTextFile(path), (await vm.fs.stat(path)).permissions], ['less', '0755']);
		await vm.fs.writeFile('/tmp/new', 'new');
		assert.equal((await vm.fs.stat('/tmp/new')).permissions, '0600');
		await vm.fs.remove(path);
		assert.equal(await vm.fs.exists(path), false);
		for (const ask of [() => vm.fs.stat(path), () => vm.fs.readDir(path), () => vm.fs.remove(path)])
			await assert.rejects(ask, answered(404, 'NOT_FOUND'));
	});
	await testWithBox(driver, 'files: a part of one', async (client, { vm }) => {
		await vm.fs.writeFile('/tmp/bytes', everyByte);
		const part = async (options) => Buffer.from(await vm.fs.readFile('/tmp/bytes', options));
		assert.deepEqual(await part({ offset: 10, length: 5 }), everyByte.subarray(10, 15));
		assert.deepEqual(await part({ offset: 250 }), everyByte.subarray(250));
		await assert.rejects(part({ offset: 256 }), answered(416));
	});
	await testWithBox(driver, 'files: in chunks', async (client, box) => {
		const { vm } = box;
		const bytes = noise(9 * 1024 * 1024);
		const chunkSize = 4 * 1024 * 1024;
		const seen = [];
		const whole = await requestsDuring(() => vm.fs.writeFile('/tmp/large', bytes,
			{ chunkSize, mode: 0o640, onProgress: ({ completedBytes }) => seen.push(completedBytes) }));
		assert.deepEqual(seen, [chunkSize, 2 * chunkSize, bytes.length]);
		assert.equal(whole.length, 5);
		assert.ok((await client.download(box, '/tmp/large')).equals(bytes));
		assert.equal((await vm.fs.stat('/tmp/large')).permissions, '0640');
		await fault({ provider: 'freestyle', op: 'upload', after: 2, action: 'reset-after-work' });
		await vm.fs.writeFile('/tmp/again', bytes, { chunkSize });
		assert.ok((await client.download(box, '/tmp/again')).equals(bytes));
		await fault({ provider: 'freestyle', op: 'upload', after: 2, action: 'status', status: 400 });
		await assert.rejects(vm.fs.writeFile('/tmp/never', bytes, { chunkSize }), answered(400));
		assert.equal(await vm.fs.exists('/tmp/never'), false);
	});
}

// Lives

async function testLives() {
	const client = open(driver, 'lives');
	const gone = async (box) => {
		while (await client.exists(box.id));
		assert.deepEqual(await alive('freestyle'), []);
	};
	await test('freestyle: a life of two seconds', async () => {
		const box = await client.create({ ttlSeconds: 2 });
		assert.equal((await client.run(box, 'echo up')).output, 'up\n');
		await gone(box);
	});
	await test('freestyle: idle is paused, and paused is deleted', async () => {
		const box = await client.create({ idleTimeoutSeconds: 1, autoDeleteSeconds: 1 });
		await gone(box);
		const kept = await client.create({ idleTimeoutSeconds: 1 });
		while ((await kept.vm.data()).state === 'running');
		assert.equal((await kept.vm.data()).state, 'paused');
		await client.destroy(kept);
		const deleted = await client.create({ autoDeleteSeconds: 0 });
		await deleted.vm.pause();
		await gone(deleted);
	});
	await test('freestyle: budgets of running', async () => {
		const box = await client.create({ maxRunTotalSeconds: 1 });
		while ((await box.vm.data()).state === 'running');
		await assert.rejects(box.vm.start(), answered(409, 'CONFLICT'));
		await assert.rejects(client.run(box, 'true'), answered(409, 'CONFLICT'));
		await box.vm.update({ maxRunTotalSeconds: -1, maxRunSeconds: 1 });
		assert.equal((await box.vm.start()).state, 'running');
		while ((await box.vm.data()).state === 'running');
		assert.equal((await box.vm.start()).state, 'running');
		await client.destroy(box);
	});
	await testWithBox(driver, 'update and resize', async (one, { vm }) => {
		const data = await vm.update({ slug: 'new-name', displayName: 'x', metadata: { b: '', c: '3' }, ttlSeconds: 7200 });
		assert.deepEqual([data.slug, data.displayName, data.metadata, data.ttlSeconds],
			['new-name', 'x', { a: '1', c: '3' }, 7200]);
		assert.equal((await vm.update({ slug: '' })).slug, null);
		assert.deepEqual((await vm.resize({ cpu: 8, memory: 16384 })).resources,
			{ cpu: 8, memory: 16384, storage: 32768 });
		await assert.rejects(vm.resize({ cpu: 4 }), answered(400));
		await vm.pause();
		await assert.rejects(vm.resize({ storage: 65536 }), answered(409));
	}, { labels: { a: '1', b: '2' } });
	await test('freestyle: states on the way', async () => {
		const box = await withSettings('freestyle', { startDelayMs: 600_000 }, () => client.create());
		assert.equal(box.data.state, 'starting');
		await assert.rejects(client.run(box, 'true'), answered(409, 'CONFLICT'));
		await client.destroy(box);
		const other = await client.create();
		await withSettings('freestyle', { pauseDelayMs: 600_000 }, async () =>
			assert.equal((await other.vm.pause()).state, 'pausing'));
		await assert.rejects(other.vm.start(), answered(409, 'CONFLICT'));
		await client.destroy(other);
	});
}

export default async function () {
	await runScenario(driver);
	await testCreate();
	await testBackground();
	await testList();
	await testCommands();
	await testFiles();
	await testLives();
	await testNothingLeft(driver);
}
