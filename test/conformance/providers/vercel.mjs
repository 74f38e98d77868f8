// Vercel Sandbox: @vercel/sandbox

import assert from 'node:assert/strict';

import { APIError, Sandbox, StreamError } from '@vercel/sandbox';

import { alive, fault, origin, requestsDuring, withQuota, withSettings } from '../emulator.mjs';
import {
	everyByte, longScript, noise, open, runScenario, testNothingLeft, testWithBox, waitingScript,
} from '../scenario.mjs';
import { test } from '../tap.mjs';

// A script is an argument of a shell, and Linux takes none of more than 128 KiB.
const LONGEST_ARGUMENT = 128 * 1024;

// How often the client sends what was answered by 429 or 5xx.
const ATTEMPTS = 3;

// The client has no setting for its address, but takes a function to fetch with.
const ADDRESS = 'https://vercel.com/api';

function fetchHere(url, options) {
	assert.ok(url.startsWith(ADDRESS), url);
	return fetch(`${origin}/vercel${url.slice(ADDRESS.length)}`, options);
}

// What the client tells by an exit code or by null.
class TimedOut extends Error {}
class Missing extends Error {}

const KILLED = 128 + 9;

function answered(status, code) {
	return (error) => error instanceof APIError && error.response.status === status &&
		(code === undefined || error.json.error.code === code);
}

async function collect(logs, heard = () => {}) {
	const all = { stdout: '', stderr: '' };
	for await (const { stream, data } of logs) {
		all[stream] += data;
		heard(data);
	}
	return all;
}

class Client {
	constructor(token) {
		this.options = { token, teamId: 'team_1', projectId: 'prj_1', fetch: fetchHere };
	}

	// A stop and a start give another object of the client's, so there is one around it.
	async create({ labels, env, ...more } = {}) {
		const sandbox = await Sandbox.create({ ...this.options, tags: labels, env, ...more });
		return { id: sandbox.name, sandbox };
	}

	list(query) {
		return Sandbox.list({ ...this.options, ...query });
	}

	// The client can filter by one tag.
	async find(labels) {
		const wanted = Object.entries(labels);
		const tags = wanted.length > 0 ? Object.fromEntries(wanted.slice(0, 1)) : undefined;
		return (await (await this.list({ tags })).toArray())
			.filter((one) => wanted.every(([name, value]) => one.tags[name] === value))
			.map((one) => one.name);
	}

	get(id, more) {
		return Sandbox.get({ ...this.options, name: id, ...more });
	}

	async exists(id) {
		try {
			await this.get(id);
			return true;
		} catch (error) {
			if (answered(404)(error))
				return false;
			throw error;
		}
	}

	// In the session there is: the sandbox itself would start one if that is over.
	async runApart({ sandbox }, script, { env, cwd, timeout } = {}) {
		const session = sandbox.currentSession();
		let args = ['-c', script];
		if (script.length >= LONGEST_ARGUMENT) {
			await session.writeFiles([{ path: '/tmp/script', content: script }]);
			args = ['/tmp/script'];
		}
		const done = await session.runCommand({
			cmd: 'bash', args, env, cwd, timeoutMs: timeout && timeout * 1000,
		});
		if (timeout && done.exitCode === KILLED)
			throw new TimedOut();
		return { stdout: await done.stdout(), stderr: await done.stderr(), exitCode: done.exitCode };
	}

	async run(box, script, options) {
		const { stdout, stderr, exitCode } = await this.runApart(box, script, options);
		return { output: stdout + stderr, exitCode };
	}

	start({ sandbox }, script) {
		return sandbox.runCommand({ cmd: 'bash', args: ['-c', script], detached: true });
	}

	async status({ sandbox }, { cmdId }) {
		return (await sandbox.getCommand(cmdId)).exitCode ?? undefined;
	}

	logs(box, job) {
		return collect(job.logs());
	}

	follow(box, job, heard) {
		return collect(job.logs(), heard);
	}

	upload({ sandbox }, path, bytes) {
		return sandbox.writeFiles([{ path, content: bytes }]);
	}

	async download({ sandbox }, path) {
		const bytes = await sandbox.readFileToBuffer({ path });
		if (bytes === null)
			throw new Missing();
		return bytes;
	}

	home() {
		return '/vercel/sandbox';
	}

	stop({ sandbox }) {
		return sandbox.stop();
	}

	async resume(box) {
		box.sandbox = await this.get(box.id, { resume: true });
	}

	destroy({ sandbox }) {
		return sandbox.delete();
	}

	async close() {}
}

const driver = {
	name: 'vercel',
	connect: (token) => new Client(token),
	errors: {
		refused: answered(401, 'unauthorized'),
		denied: answered(403, 'forbidden'),
		limited: answered(429),
		timeout: TimedOut,
		gone: answered(404, 'not_found'),
		missing: Missing,
	},
};

// Creating

async function testCreate() {
	await test('vercel: the requests of a life', async () => {
		const client = open(driver, 'paths');
		const requests = await requestsDuring(async () => {
			const box = await client.create({ name: 'life' });
			await client.run(box, 'true');
			await client.upload(box, '/tmp/file', 'x');
			await client.stop(box);
			await client.resume(box);
			await client.destroy(box);
		});
		assert.deepEqual(
			requests.map((one) => `${one.op} ${one.method} ${one.path.replace(/sbx_\w+/, 'ID')}`),
			[
				'create POST /vercel/v3/sandboxes?teamId=team_1',
				'run POST /vercel/v2/sandboxes/sessions/ID/cmd?teamId=team_1',
				'upload POST /vercel/v2/sandboxes/sessions/ID/fs/write?teamId=team_1',
				'stop POST /vercel/v2/sandboxes/sessions/ID/stop?teamId=team_1',
				'start GET /vercel/v2/sandboxes/life?teamId=team_1&projectId=prj_1&resume=true',
				'delete DELETE /vercel/v2/sandboxes/life?teamId=team_1&projectId=prj_1',
			]);
		assert.equal(requests[0].headers.authorization, 'Bearer ***');
		assert.equal(requests[2].headers['content-type'], 'application/gzip');
	});
	await testWithBox(driver, 'create: what a sandbox is told to be', async (client, { sandbox }) => {
		assert.equal(sandbox.status, 'running');
		assert.deepEqual(
			[sandbox.name, sandbox.persistent, sandbox.vcpus, sandbox.memory, sandbox.region],
			['told', false, 4, 8192, 'fra1']);
		assert.deepEqual(sandbox.failoverRegions, ['cdg1']);
		assert.deepEqual(sandbox.tags, { 'a b': 'ü:=&', plain: 'x' });
		assert.match(sandbox.image, /^vercel\/sandbox\/node@sha256:[0-9a-f]{64}$/);
		assert.deepEqual(sandbox.networkPolicy,
			{ allow: ['*.example.com'], subnets: { deny: ['10.0.0.0/8'] } });
		assert.match(sandbox.domain(3000), /^https:\/\/sb-[0-9a-f]+\.vercel\.run$/);
		assert.throws(() => sandbox.domain(3001), /No route/);
		const left = sandbox.expiresAt - Date.now();
		assert.ok(left > 500_000 && left <= 600_000, `${left}`);
		const again = await client.get('told');
		assert.equal(again.currentSession().sessionId, sandbox.currentSession().sessionId);
		assert.deepEqual(again.routes, sandbox.routes);
	}, {
		name: 'told', persistent: false, resources: { vcpus: 4 }, region: 'fra1',
		failoverRegions: ['cdg1'], labels: { 'a b': 'ü:=&', plain: 'x' }, timeout: 600_000,
		image: 'vercel/sandbox/node:24', ports: [3000],
		networkPolicy: { allow: ['*.example.com'], subnets: { deny: ['10.0.0.0/8'] } },
	});
	await testWithBox(driver, 'create: with a runtime, and nothing else', async (client, { sandbox }) => {
		assert.equal(sandbox.runtime, 'node24');
		assert.equal(sandbox.image, undefined);
		assert.deepEqual([sandbox.persistent, sandbox.vcpus, sandbox.timeout], [true, 2, 300_000]);
		assert.deepEqual(sandbox.routes, []);
	}, { runtime: 'node24' });
	await testWithBox(driver, 'create: changed later', async (client, { sandbox }) => {
		const before = sandbox.expiresAt;
		await sandbox.update({
			timeout: 900_000, tags: { b: '2' }, ports: [4000], networkPolicy: 'deny-all',
		});
		assert.deepEqual(sandbox.tags, { b: '2' });
		assert.equal(sandbox.networkPolicy, 'deny-all');
		assert.ok(sandbox.domain(4000));
		assert.equal(sandbox.expiresAt - before, 600_000);
		assert.deepEqual(await client.find({ a: '1' }), []);
		assert.deepEqual(await client.find({ b: '2' }), [sandbox.name]);
		await sandbox.extendTimeout(60_000);
		assert.equal(sandbox.expiresAt - before, 660_000);
		await assert.rejects(sandbox.extendTimeout(24 * 3600 * 1000),
			answered(400, 'sandbox_timeout_invalid'));
		assert.equal((await client.get(sandbox.name)).expiresAt - before, 660_000);
	}, { labels: { a: '1' } });
	await test('vercel: get or create', async () => {
		const client = open(driver, 'get-or-create');
		const made = [];
		const reach = () => Sandbox.getOrCreate({
			...client.options, name: 'only', onCreate: (box) => made.push(box.name),
		});
		const box = await reach();
		assert.equal((await reach()).currentSession().sessionId, box.currentSession().sessionId);
		assert.deepEqual(made, ['only']);
		await box.delete();
	});
}

async function testCreateRefused() {
	const client = open(driver, 'refused');
	const refused = (name, params, expected) => test(`vercel: create with ${name}`, async () => {
		await assert.rejects(client.create(params), expected);
		assert.deepEqual(await client.find({}), []);
	});
	await refused('an unknown image', { image: 'no-such-image' }, answered(404, 'not_found'));
	await refused('an unknown snapshot',
		{ source: { type: 'snapshot', snapshotId: 'snap_no-such-1' } },
		answered(410, 'snapshot_not_found'));
	await refused('six tags', { labels: { a: '', b: '', c: '', d: '', e: '', f: '' } },
		answered(400, 'bad_request'));
	await refused('three vCPUs', { resources: { vcpus: 3 } }, answered(400, 'bad_request'));
	await test('vercel: create in an unknown project', async () => {
		await assert.rejects(Sandbox.create({ ...client.options, projectId: 'no-such-project' }),
			answered(404, 'not_found'));
		await assert.rejects(Sandbox.create({ ...client.options, teamId: 'no-such-team' }),
			answered(403, 'forbidden'));
	});
	await test('vercel: create with a name that is taken', async () => {
		const box = await client.create({ name: 'taken' });
		await assert.rejects(client.create({ name: 'taken' }),
			(error) => answered(400, 'bad_request')(error) &&
				/'taken' already exists for this project/.test(error.message));
		const elsewhere = { ...client.options, projectId: 'prj_2' };
		await (await Sandbox.create({ ...elsewhere, name: 'taken' })).delete();
		await client.stop(box);
		await assert.rejects(client.create({ name: 'taken' }), answered(400, 'bad_request'));
		await client.destroy(box);
		await client.destroy(await client.create({ name: 'taken' }));
	});
	await test('vercel: create above the quota', async () => {
		const requests = await requestsDuring(() => withQuota('vercel', { sandboxes: 1 }, async () => {
			const box = await client.create();
			await assert.rejects(client.create(), answered(429));
			await client.stop(box);
			const other = await client.create();
			await assert.rejects(client.resume(box), answered(429));
			await client.destroy(box);
			await client.destroy(other);
		}));
		assert.equal(requests.filter((one) => one.op === 'create').length, 1 + ATTEMPTS + 1);
		await withQuota('vercel', { cpu: 4 }, async () => {
			await assert.rejects(client.create({ resources: { vcpus: 6 } }), answered(429));
			await client.destroy(await client.create({ resources: { vcpus: 4 } }));
		});
	});
	await test('vercel: create at a rate limit', async () => {
		const limit = (seconds) => fault({
			provider: 'vercel', op: 'create', action: 'status', status: 429,
			body: { error: { code: 'rate_limited', message: 'too fast' } },
			headers: { 'retry-after': `${seconds}` },
		});
		await limit(1);
		const requests = await requestsDuring(async () => {
			await client.destroy(await client.create());
			await limit(60);
			await assert.rejects(client.create(), answered(429));
		});
		assert.equal(requests.filter((one) => one.op === 'create').length, 3);
	});
}

// Listing

async function testList() {
	await test('vercel: list in pages and orders', async () => {
		const client = open(driver, 'pages');
		const made = [];
		for (const name of ['b-1', 'a-2', 'b-3', 'a-4', 'b-5'])
			made.push(await client.create({ name, labels: { letter: name[0], odd: 'a b&c=d/é:%+' } }));
		const names = async (query) =>
			(await (await client.list(query)).toArray()).map((one) => one.name);
		let listed;
		const requests = await requestsDuring(async () => {
			listed = await names({ limit: 2 });
		});
		assert.deepEqual(listed, ['b-5', 'a-4', 'b-3', 'a-2', 'b-1']);
		assert.equal(requests.length, 3);
		assert.deepEqual(await names({ limit: 3, sortBy: 'name', sortOrder: 'asc' }),
			['a-2', 'a-4', 'b-1', 'b-3', 'b-5']);
		assert.deepEqual(await names({ limit: 1, sortBy: 'name', namePrefix: 'a-' }), ['a-4', 'a-2']);
		assert.deepEqual(await names({ limit: 2, tags: { letter: 'b' } }), ['b-5', 'b-3', 'b-1']);
		assert.equal((await names({ tags: { odd: 'a b&c=d/é:%+' } })).length, 5);
		await made[2].sandbox.stop();
		assert.equal((await names({ sortBy: 'statusUpdatedAt', limit: 1 }))[0], 'b-3');
		await assert.rejects(client.list({ limit: 51 }), answered(400, 'bad_request'));
		await assert.rejects(client.list({ namePrefix: 'a-' }), answered(400, 'bad_request'));
		for (const box of made)
			await client.destroy(box);
		assert.deepEqual(await names({}), []);
	});
	await test('vercel: a list that lags behind', async () => {
		const client = open(driver, 'lag');
		await withSettings('vercel', { listLagMs: 600_000 }, async () => {
			const box = await client.create();
			assert.deepEqual(await client.find({}), []);
			assert.equal(await client.exists(box.id), true);
			await client.destroy(box);
		});
	});
	await testWithBox(driver, 'the sessions of a sandbox', async (client, box) => {
		const other = await client.create();
		const first = box.sandbox.currentSession().sessionId;
		await client.stop(box);
		await client.resume(box);
		const second = box.sandbox.currentSession().sessionId;
		assert.notEqual(first, second);
		const sessions = await (await box.sandbox.listSessions({ limit: 1 })).toArray();
		assert.deepEqual(sessions.map((one) => `${one.id} ${one.status}`),
			[`${second} running`, `${first} stopped`]);
		await client.destroy(other);
	});
}

// Sessions

async function testSessions() {
	await testWithBox(driver, 'session: one that is over is followed by another', async (client, box) => {
		const { sandbox } = box;
		const first = sandbox.currentSession();
		await client.upload(box, 'kept', 'kept');
		assert.equal((await sandbox.stop()).status, 'stopping');
		assert.equal((await client.get(box.id)).status, 'stopped');
		await assert.rejects(first.runCommand('true'), answered(410, 'sandbox_stopped'));
		const done = await sandbox.runCommand('cat', ['kept']);
		assert.equal(await done.stdout(), 'kept');
		assert.notEqual(sandbox.currentSession().sessionId, first.sessionId);
		await assert.rejects(first.runCommand('true'), answered(410, 'sandbox_stopped'));
	});
	await testWithBox(driver, 'session: what does not persist begins with nothing', async (client, box) => {
		await client.upload(box, '/tmp/lost', 'lost');
		await client.stop(box);
		await client.resume(box);
		assert.equal(await box.sandbox.readFileToBuffer({ path: '/tmp/lost' }), null);
		assert.equal(box.sandbox.sourceSnapshotId, undefined);
	}, { persistent: false });
	await testWithBox(driver, 'session: while one stops', async (client, box) => {
		await withSettings('vercel', { stopDelayMs: 600_000 }, async () => {
			await client.stop(box);
			assert.equal((await client.get(box.id)).status, 'stopping');
			await assert.rejects(client.run(box, 'true'), answered(422, 'sandbox_stopping'));
			assert.equal((await box.sandbox.runCommand('true')).exitCode, 0);
		});
	});
	await test('vercel: session: one that is not ready yet', async () => {
		const client = open(driver, 'pending');
		const box = await withSettings('vercel', { startDelayMs: 500 }, () => client.create());
		assert.equal(box.sandbox.status, 'pending');
		while (box.sandbox.status !== 'running')
			box.sandbox = await client.get(box.id);
		assert.equal((await client.run(box, 'echo up')).output, 'up\n');
		await client.destroy(box);
	});
	await test('vercel: session: a lifetime of two seconds', async () => {
		const client = open(driver, 'lifetime');
		const box = await client.create({ timeout: 2000, persistent: false });
		assert.equal((await client.run(box, 'echo up')).output, 'up\n');
		while ((await client.get(box.id)).status === 'running');
		await assert.rejects(client.run(box, 'true'), answered(410, 'sandbox_stopped'));
		assert.deepEqual(await alive('vercel'), []);
		await client.destroy(box);
	});
	await test('vercel: a delete that takes its time', async () => {
		const client = open(driver, 'deleting');
		await withSettings('vercel', { deleteDelayMs: 300 }, async () => {
			const box = await client.create();
			await client.destroy(box);
			assert.deepEqual(await alive('vercel'), []);
			while (await client.exists(box.id))
				assert.equal((await client.get(box.id).catch(() => ({ status: 'stopping' }))).status, 'stopping');
			await assert.rejects(client.destroy(box), answered(404));
		});
	});
}

// Commands

async function testCommands() {
	await testWithBox(driver, 'command: what is not run', async (client, { sandbox }) => {
		await assert.rejects(sandbox.runCommand('/no/program'), answered(400, 'bad_request'));
		await assert.rejects(sandbox.runCommand({ cmd: 'true', cwd: '/nowhere' }),
			answered(400, 'bad_request'));
		await assert.rejects(sandbox.runCommand('bash', ['-c', longScript(LONGEST_ARGUMENT, 'true')]),
			answered(400, 'bad_request'));
		await assert.rejects(sandbox.runCommand('true', [], { timeoutMs: 50 }),
			answered(400, 'bad_request'));
		await assert.rejects(sandbox.getCommand('cmd_none'), answered(404, 'not_found'));
		const done = await sandbox.runCommand('printf', ['<%s>', 'a b', '$x', '']);
		assert.equal(await done.stdout(), '<a b><$x><>');
	});
	await testWithBox(driver, 'command: ended by a signal', async (client, box) => {
		const own = await client.runApart(box, 'echo a; kill -9 $$');
		assert.deepEqual([own.stdout, own.exitCode], ['a\n', 137]);
		for (const [signal, exitCode] of [['SIGTERM', 143], ['SIGINT', 130], [undefined, 143]]) {
			const job = await client.start(box, 'exec sleep 600');
			assert.equal(await client.status(box, job), undefined);
			await job.kill(signal);
			assert.equal((await job.wait()).exitCode, exitCode);
			assert.equal(await client.status(box, job), exitCode);
		}
	});
	await testWithBox(driver, 'command: one in the background has a timeout', async (client, { sandbox }) => {
		const job = await sandbox.runCommand({
			cmd: 'bash', args: ['-c', 'echo begun; sleep 600'], detached: true, timeoutMs: 500,
		});
		assert.equal((await job.wait()).exitCode, 137);
		assert.equal(await job.stdout(), 'begun\n');
	});
	await testWithBox(driver, 'command: characters that are cut in two', async (client, box) => {
		const script = 'for i in $(seq 40000); do printf "xü€😀"; done';
		assert.equal((await client.run(box, script)).output, 'xü€😀'.repeat(40000));
		const slow = await client.run(box,
			'for b in 303 274 342 202 254 360 237 230 200; do printf "\\\\$b"; sleep 0.02; done; printf "\\\\377"');
		assert.equal(slow.output, 'ü€😀\ufffd');
	});
	await testWithBox(driver, 'command: output as it comes', async (client, { sandbox }) => {
		let ended = false;
		let hearing;
		const begun = new Promise((resolve) => { hearing = resolve; });
		const done = sandbox.runCommand({
			cmd: 'bash',
			args: ['-c', waitingScript('/tmp/go', 'echo before', 'echo after')],
			stdout: { write: hearing },
		}).finally(() => { ended = true; });
		assert.equal(await begun, 'before\n');
		assert.equal(ended, false);
		await sandbox.runCommand('touch', ['/tmp/go']);
		assert.equal(await (await done).stdout(), 'before\nafter\n');
	});
	await testWithBox(driver, 'command: ends with its session', async (client, box) => {
		const job = await client.start(box, 'echo begun; exec sleep 600');
		let hearing;
		const begun = new Promise((resolve) => { hearing = resolve; });
		const followed = client.follow(box, job, hearing);
		await begun;

		// Listened to before the stop, during which it can come.
		const closed = assert.rejects(followed, (error) =>
			error instanceof StreamError && error.code === 'sandbox_stream_closed');
		await client.stop(box);
		await closed;
		await assert.rejects(job.wait(), answered(410, 'sandbox_stopped'));
	});
	await testWithBox(driver, 'command: an answer that is cut off', async (client, box) => {
		await fault({ provider: 'vercel', op: 'run', action: 'truncate' });
		await assert.rejects(client.run(box, 'echo text'));
		assert.equal((await client.run(box, 'echo text')).output, 'text\n');
	});
	await testWithBox(driver, 'command: sent again by the client at 500', async (client, box) => {
		await fault({ provider: 'vercel', op: 'run', action: 'status', status: 500, work: true });
		assert.equal((await client.run(box, 'echo x >>/tmp/runs; cat /tmp/runs')).output, 'x\nx\n');
	});
}

// Files

async function testFiles() {
	await testWithBox(driver, 'files: several at once, relative, long, with a mode', async (client, box) => {
		const { sandbox } = box;
		const long = `${'d'.repeat(60)}/${'ü'.repeat(60)}/${'f'.repeat(60)}`;
		await sandbox.writeFiles([
			{ path: 'a/one file', content: everyByte },
			{ path: '/tmp/script', content: '#!/bin/sh\necho ran\n', mode: 0o755 },
			{ path: long, content: 'long' },
		]);
		assert.deepEqual(await client.download(box, '/vercel/sandbox/a/one file'), everyByte);
		assert.equal((await client.run(box, '/tmp/script; stat -c %a /tmp/script "a/one file"')).output,
			'ran\n755\n644\n');
		assert.equal(`${await sandbox.readFileToBuffer({ path: long })}`, 'long');
		assert.deepEqual(await sandbox.readFileToBuffer({ path: 'one file', cwd: 'a' }), everyByte);
		await sandbox.writeFiles([{ path: '/tmp/script', content: 'less' }]);
		assert.equal(`${await client.download(box, '/tmp/script')}`, 'less');
	});
	await testWithBox(driver, 'files: what cannot be', async (client, box) => {
		const { sandbox } = box;
		await sandbox.mkDir('new');
		await assert.rejects(sandbox.mkDir('new'), answered(400));
		await assert.rejects(sandbox.mkDir('no/parent'), answered(400));
		await assert.rejects(client.upload(box, '/usr/file', 'x'), answered(400));
		await assert.rejects(client.download(box, '/tmp'), answered(400));
		assert.equal((await client.run(box, 'ls -d new no /usr/file 2>/dev/null')).output, 'new\n');
	});
	await testWithBox(driver, 'files: as those of Node.js', async (client, { sandbox }) => {
		const { fs } = sandbox;
		const bytes = noise(300_000);
		await fs.mkdir('/tmp/a/b', { recursive: true });
		await fs.writeFile('/tmp/a/file', bytes);
		assert.ok((await fs.readFile('/tmp/a/file')).equals(bytes));
		assert.deepEqual((await fs.readdir('/tmp/a')).sort(), ['b', 'file']);
		assert.equal((await fs.stat('/tmp/a/file')).size, 300_000);
		await fs.rename('/tmp/a/file', '/tmp/a/b/moved');
		assert.equal(await fs.exists('/tmp/a/file'), false);
		assert.equal(await fs.exists('/tmp/a/b/moved'), true);
		await fs.rm('/tmp/a', { recursive: true });
		await assert.rejects(fs.readFile('/tmp/a/b/moved'), { code: 'ENOENT' });
	});
}

export default async function () {
	await runScenario(driver);
	await testCreate();
	await testCreateRefused();
	await testList();
	await testSessions();
	await testCommands();
	await testFiles();
	await testNothingLeft(driver);
}
