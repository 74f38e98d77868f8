// Daytona: @daytonaio/sdk

import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';

import * as daytona from '@daytonaio/sdk';

import { alive, origin, requestsDuring, reset, withSettings } from '../emulator.mjs';
import {
	everyByte, longScript, noise, open, runScenario, testNothingLeft, testWithBox, waitingScript,
} from '../scenario.mjs';
import { test } from '../tap.mjs';

let sessions = 0;

async function newSession(box) {
	const id = `session-${++sessions}`;
	await box.process.createSession(id);
	return id;
}

async function collect(iterator) {
	const all = [];
	for await (const one of iterator)
		all.push(one);
	return all;
}

class Client {
	constructor(key) {
		this.sdk = new daytona.Daytona({ apiKey: key, apiUrl: `${origin}/daytona/api`, target: 'us' });
	}

	create({ labels, env, ...more } = {}) {
		return this.sdk.create({ labels, envVars: env, ...more });
	}

	async find(labels) {
		return (await collect(this.sdk.list({ labels }))).map((box) => box.id);
	}

	async exists(id) {
		try {
			await this.sdk.get(id);
			return true;
		} catch (error) {
			if (error instanceof daytona.DaytonaNotFoundError)
				return false;
			throw error;
		}
	}

	async run(box, script, { env, cwd, timeout } = {}) {
		const { result, exitCode } = await box.process.executeCommand(script, cwd, env, timeout);
		return { output: result, exitCode };
	}

	async runApart(box, script) {
		const session = await newSession(box);
		const done = await box.process.executeSessionCommand(session, { command: script });
		await box.process.deleteSession(session);
		return { stdout: done.stdout, stderr: done.stderr, exitCode: done.exitCode };
	}

	async start(box, script) {
		const session = await newSession(box);
		const { cmdId } = await box.process.executeSessionCommand(session,
			{ command: script, runAsync: true });
		return { session, command: cmdId };
	}

	async status(box, { session, command }) {
		return (await box.process.getSessionCommand(session, command)).exitCode;
	}

	async logs(box, { session, command }) {
		const { stdout, stderr } = await box.process.getSessionCommandLogs(session, command);
		return { stdout, stderr };
	}

	async follow(box, { session, command }, heard) {
		const all = { stdout: '', stderr: '' };
		const hear = (stream) => (text) => {
			all[stream] += text;
			heard(text);
		};
		await box.process.getSessionCommandLogs(session, command, hear('stdout'), hear('stderr'));
		return all;
	}

	upload(box, path, bytes) {
		return box.fs.uploadFile(bytes, path);
	}

	download(box, path) {
		return box.fs.downloadFile(path);
	}

	home(box) {
		return box.getUserHomeDir();
	}

	stop(box) {
		return box.stop();
	}

	resume(box) {
		return box.start();
	}

	destroy(box) {
		return box.delete();
	}

	close() {
		return this.sdk[Symbol.asyncDispose]();
	}
}

const driver = {
	name: 'daytona',
	connect: (key) => new Client(key),
	errors: {
		refused: daytona.DaytonaAuthenticationError,
		denied: daytona.DaytonaAuthorizationError,
		limited: daytona.DaytonaRateLimitError,
		timeout: daytona.DaytonaProcessExecutionTimeoutError,
		gone: daytona.DaytonaNotFoundError,
		missing: daytona.DaytonaFileNotFoundError,
	},
};

// For a test in which the emulator refuses to destroy a sandbox for minutes.
async function forgetTheOnly(name) {
	assert.deepEqual((await alive('daytona')).map((box) => box.name), [name]);
	await reset();
}

// Creating

async function testCreate() {
	await testWithBox(driver, 'create from a snapshot', async (client, box) => {
		assert.equal(box.state, 'started');
		assert.equal(box.snapshot, 'my-snapshot');
		assert.deepEqual([box.cpu, box.memory, box.disk], [1, 1, 3]);
		assert.deepEqual(box.labels, { a: 'ü', 'code-toolbox-language': 'python' });
		assert.deepEqual(box.env, { X: 'y' });
		assert.equal((await client.sdk.get('named')).id, box.id);
	}, { name: 'named', snapshot: 'my-snapshot', labels: { a: 'ü' }, env: { X: 'y' } });
	await testWithBox(driver, 'create from an image', async (client, box) => {
		assert.equal(box.state, 'started');
		assert.equal(box.snapshot, undefined);
		assert.equal(box.buildInfo.dockerfileContent, 'FROM debian:12\n');
		assert.deepEqual([box.cpu, box.memory, box.disk], [2, 4, 8]);
		assert.deepEqual(await client.find({ of: 'image' }), [box.id]);
		assert.equal((await client.run(box, 'echo runs')).output, 'runs\n');
	}, { image: 'debian:12', resources: { cpu: 2, memory: 4, disk: 8 }, labels: { of: 'image' } });
	await test('daytona: create waits until the sandbox has started', async () => {
		const client = open(driver, 'waits');
		for (const params of [{ snapshot: 's' }, { image: 'debian:12' }])
			for (const setting of ['delayMs', 'startDelayMs'])
				await withSettings('daytona', { [setting]: 200 }, async () => {
					const box = await client.create(params);
					assert.equal(box.state, 'started');
					assert.equal((await client.run(box, 'echo up')).output, 'up\n');
					await box.delete();
				});
		await client.close();
	});
	await test('daytona: a create that takes too long leaves a sandbox', async () => {
		const client = open(driver, 'late');
		await withSettings('daytona', { startDelayMs: 600_000 }, async () => {
			await assert.rejects(client.sdk.create({ name: 'late' }, { timeout: 0.3 }),
				daytona.DaytonaTimeoutError);
			const box = await client.sdk.get('late');
			assert.equal(box.state, 'creating');
			await assert.rejects(box.delete(), daytona.DaytonaConflictError);
		});
		await client.close();
		await forgetTheOnly('late');
	});
}

async function testCreateRefused() {
	const client = open(driver, 'refused');
	const refused = async (name, params, expected) => test(`daytona: create with ${name}`, async () => {
		await assert.rejects(client.create(params), expected);
		assert.deepEqual(await client.find({}), []);
	});
	await refused('an unknown snapshot', { snapshot: 'no-such-snapshot' },
		(error) => error instanceof daytona.DaytonaValidationError && error.statusCode === 400 &&
			/Snapshot no-such-snapshot not found/.test(error.message));
	await refused('a snapshot and sizes', { snapshot: 's', resources: { cpu: 2 } },
		daytona.DaytonaValidationError);
	await test('daytona: create with a name that is taken', async () => {
		const box = await client.create({ name: 'taken' });
		await assert.rejects(client.create({ name: 'taken' }), daytona.DaytonaConflictError);
		await box.delete();
		const next = await client.create({ name: 'taken' });
		assert.notEqual(next.id, box.id);
		await next.delete();
	});
	await test('daytona: create from an unknown image fails to build', async () => {
		await assert.rejects(client.create({ image: 'no-such-image', labels: { built: 'no' } }),
			daytona.DaytonaError);
		const [failed] = await collect(client.sdk.list({ labels: { built: 'no' } }));
		assert.equal(failed.state, 'build_failed');
		await failed.delete();
	});
	await client.close();
}

// Listing

async function testList() {
	await test('daytona: list in pages', async () => {
		const client = open(driver, 'pages');
		const made = [];
		for (let i = 0; i < 5; i++)
			made.push(await client.create({ name: `page-${i}`, labels: { page: 'yes' } }));
		const other = await client.create({ name: 'other' });
		let listed;
		const requests = await requestsDuring(async () => {
			listed = await collect(client.sdk.list({
				labels: { page: 'yes' }, limit: 2, sort: 'createdAt', order: 'asc',
			}));
		});
		assert.deepEqual(listed.map((box) => box.name),
			['page-0', 'page-1', 'page-2', 'page-3', 'page-4']);
		assert.equal(requests.filter((one) => one.op === 'list').length, 3);
		assert.equal((await listed[3].process.executeCommand('echo it')).result, 'it\n');
		assert.equal((await collect(client.sdk.list({ limit: 2 }))).length, 6);
		assert.deepEqual(
			(await collect(client.sdk.list({ name: 'OTH' }))).map((box) => box.id), [other.id]);
		await made[0].stop();
		assert.deepEqual(
			(await collect(client.sdk.list({ states: ['stopped'] }))).map((box) => box.id),
			[made[0].id]);
		for (const box of [...made, other])
			await box.delete();
		assert.deepEqual(await client.find({}), []);
		await client.close();
	});
	await test('daytona: a list that lags behind', async () => {
		const client = open(driver, 'lag');
		await withSettings('daytona', { listLagMs: 600_000 }, async () => {
			const box = await client.create({ labels: { lag: 'yes' } });
			assert.deepEqual(await client.find({ lag: 'yes' }), []);
			assert.equal(await client.exists(box.id), true);
			await box.delete();
		});
		await client.close();
	});
}

// Sessions

async function testSessions() {
	await testWithBox(driver, 'session: state is kept between commands', async (client, box) => {
		const session = await newSession(box);
		const run = (command) => box.process.executeSessionCommand(session, { command });
		await run('cd /tmp; export A=1; b() { echo "b $1"; }');
		const done = await run('pwd; echo $A; b 2 >&2; (exit 9)');
		assert.equal(done.stdout, '/tmp\n1\n');
		assert.equal(done.stderr, 'b 2\n');
		assert.equal(done.exitCode, 9);
		assert.equal((await run('true')).exitCode, 0);
		const other = await newSession(box);
		const fresh = await box.process.executeSessionCommand(other, { command: 'echo "[$A]"; pwd' });
		assert.equal(fresh.stdout, `[]\n${await box.getWorkDir()}\n`);
	});
	await testWithBox(driver, 'session: a script of 300 KB', async (client, box) => {
		const done = await box.process.executeSessionCommand(await newSession(box),
			{ command: longScript(300 * 1024, 'echo end') });
		assert.equal(done.stdout, 'end\n');
	});
	await testWithBox(driver, 'session: listed with its commands', async (client, box) => {
		const session = await newSession(box);
		const job = await box.process.executeSessionCommand(session,
			{ command: 'echo "first"', runAsync: true });
		await client.follow(box, { session, command: job.cmdId }, () => {});
		const running = await box.process.executeSessionCommand(session,
			{ command: 'sleep 600', runAsync: true });
		const expected = [
			{ id: job.cmdId, command: 'echo "first"', exitCode: 0 },
			{ id: running.cmdId, command: 'sleep 600' },
		];
		assert.deepEqual(await box.process.getSession(session),
			{ sessionId: session, commands: expected });
		assert.deepEqual(await box.process.listSessions(),
			[{ sessionId: session, commands: expected }]);
		await box.process.deleteSession(session);
		assert.deepEqual(await box.process.listSessions(), []);
		await assert.rejects(box.process.getSession(session), daytona.DaytonaNotFoundError);
	});
	await testWithBox(driver, 'session: made once, unknown commands', async (client, box) => {
		const session = await newSession(box);
		await assert.rejects(box.process.createSession(session), daytona.DaytonaConflictError);
		await assert.rejects(box.process.getSessionCommand(session, 'nope'),
			daytona.DaytonaNotFoundError);
		await assert.rejects(box.process.executeSessionCommand('nope', { command: 'true' }),
			daytona.DaytonaNotFoundError);
	});
	await testWithBox(driver, 'session: input for a command', async (client, box) => {
		const session = await newSession(box);
		const { cmdId } = await box.process.executeSessionCommand(session,
			{ command: 'read line; echo "got $line"', runAsync: true });
		await box.process.sendSessionCommandInput(session, cmdId, 'ü\n');
		const all = await client.follow(box, { session, command: cmdId }, () => {});
		assert.equal(all.stdout, 'got ü\n');
		await assert.rejects(box.process.sendSessionCommandInput(session, cmdId, 'late\n'),
			daytona.DaytonaCommandAlreadyCompletedError);
	});
	await testWithBox(driver, 'session: exit in one hangs until it is deleted', async (client, box) => {
		const session = await newSession(box);
		const hanging = box.process.executeSessionCommand(session, { command: 'exit 3' });
		let ended = false;
		const outcome = hanging.catch((error) => error).finally(() => { ended = true; });
		let listed;
		do
			listed = await box.process.getSession(session);
		while (listed.commands.length === 0);
		await client.run(box, 'sleep 0.3');
		assert.equal(ended, false);
		assert.equal('exitCode' in listed.commands[0], false);
		await box.process.deleteSession(session);
		assert.ok(await outcome instanceof daytona.DaytonaError);
	});
	await testWithBox(driver, 'session: forgotten by stop and start', async (client, box) => {
		const session = await newSession(box);
		await box.stop();
		await box.start();
		await assert.rejects(box.process.getSession(session), daytona.DaytonaNotFoundError);
	});
}

async function testFollow() {
	await testWithBox(driver, 'follow: a log that is long', async (client, box) => {
		const job = await client.start(box,
			'for i in $(seq 3000); do echo "out $i ü"; echo "err $i" >&2; done');
		const lines = (text) => Array.from({ length: 3000 }, (_, i) => text(i + 1)).join('');
		const expected = { stdout: lines((i) => `out ${i} ü\n`), stderr: lines((i) => `err ${i}\n`) };
		assert.deepEqual(await client.follow(box, job, () => {}), expected);
		assert.deepEqual(await client.follow(box, job, () => {}), expected);
	});
	await testWithBox(driver, 'follow: ends with the session', async (client, box) => {
		const job = await client.start(box, 'echo begun; sleep 600');
		let hearing = () => {};
		const begun = new Promise((resolve) => { hearing = resolve; });
		const all = client.follow(box, job, hearing);
		await begun;
		await box.process.deleteSession(job.session);
		assert.deepEqual(await all, { stdout: 'begun\n', stderr: '' });
	});
	await testWithBox(driver, 'follow: two at the same time', async (client, box) => {
		const job = await client.start(box, waitingScript('/tmp/go', 'true', 'echo both'));
		const one = client.follow(box, job, () => {});
		const two = client.follow(box, job, () => {});
		await client.run(box, 'touch /tmp/go');
		assert.deepEqual([await one, await two],
			[{ stdout: 'both\n', stderr: '' }, { stdout: 'both\n', stderr: '' }]);
	});
	await testWithBox(driver, 'follow: an unknown command', async (client, box) => {
		const session = await newSession(box);
		await assert.rejects(client.follow(box, { session, command: 'nope' }, () => {}));
	});
}

// Files

async function testFiles() {
	await testWithBox(driver, 'files: several at once', async (client, box) => {
		await box.fs.uploadFiles([
			{ source: everyByte, destination: 'one file' },
			{ source: Buffer.from('ü'), destination: '/tmp/a/b/ü' },
		]);
		const [one, two, three] = await box.fs.downloadFiles([
			{ source: 'one file' }, { source: '/tmp/a/b/ü' }, { source: '/tmp/nothing' },
		]);
		assert.deepEqual(one.result, everyByte);
		assert.equal(two.result.toString(), 'ü');
		assert.equal(three.result, undefined);
		assert.equal(three.errorDetails.code, 'FILE_NOT_FOUND');
	});
	await testWithBox(driver, 'files: from and to the disk', async (client, box) => {
		const folder = await mkdtemp(join(tmpdir(), 'sbx-conformance-'));
		const bytes = noise(3_000_001);
		try {
			await writeFile(join(folder, 'up'), bytes);
			await box.fs.uploadFile(join(folder, 'up'), '/tmp/file');
			await box.fs.downloadFile('/tmp/file', join(folder, 'down'));
			assert.ok((await readFile(join(folder, 'down'))).equals(bytes));
		} finally {
			await rm(folder, { recursive: true });
		}
	});
	await testWithBox(driver, 'files: as streams', async (client, box) => {
		const bytes = noise(2_000_000);
		await box.fs.uploadFileStream(bytes, '/tmp/stream');
		const back = await buffer(await box.fs.downloadFileStream('/tmp/stream'));
		assert.ok(back.equals(bytes));
	});
	await testWithBox(driver, 'files: what may not be', async (client, box) => {
		await client.run(box, 'echo x >/tmp/denied; chmod 0 /tmp/denied');
		await assert.rejects(client.download(box, '/tmp/denied'), daytona.DaytonaFileAccessDeniedError);
		await assert.rejects(client.download(box, '/tmp'), daytona.DaytonaInvalidFilePathError);
		await assert.rejects(client.upload(box, '/usr/bin/x', everyByte), daytona.DaytonaValidationError);
		await client.upload(box, '/tmp/mode', everyByte);
		await box.fs.setFilePermissions('/tmp/mode', { mode: '0600' });
		assert.equal((await client.run(box, 'stat -c %a /tmp/mode')).output, '600\n');
	});
}

// Ends

async function testEnds() {
	await testWithBox(driver, 'stop of an ephemeral sandbox destroys it', async (client, box) => {
		assert.equal(box.autoDeleteInterval, 0);
		await box.stop();
		assert.equal(box.state, 'destroyed');
		assert.equal(await client.exists(box.id), false);
	}, { ephemeral: true });
	await testWithBox(driver, 'settings of a sandbox', async (client, box) => {
		await box.setAutostopInterval(30);
		await box.setAutoDeleteInterval(60);
		await box.setAutoArchiveInterval(90);
		await box.refreshActivity();
		assert.deepEqual(await box.setLabels({ later: 'yes' }), { later: 'yes' });
		await box.refreshData();
		assert.deepEqual(
			[box.autoStopInterval, box.autoDeleteInterval, box.autoArchiveInterval], [30, 60, 90]);
		assert.deepEqual(await client.find({ later: 'yes' }), [box.id]);
	});
	await testWithBox(driver, 'delete that waits', async (client, box) => {
		await box.delete(60, true);
		assert.equal(box.state, 'destroyed');
	});
	await test('daytona: delete too early is a conflict', async () => {
		const client = open(driver, 'early');
		const box = await withSettings('daytona', { deleteConflictMs: 600_000 },
			() => client.create({ name: 'early' }));
		await assert.rejects(box.delete(), daytona.DaytonaConflictError);
		await client.close();
		await forgetTheOnly('early');
	});
	await testWithBox(driver, 'the toolbox of a sandbox that does not run', async (client, box) => {
		await box.stop();
		await assert.rejects(client.run(box, 'true'), daytona.DaytonaValidationError);
		await box.delete();
		await assert.rejects(client.run(box, 'true'), daytona.DaytonaAuthenticationError);
	});
}

export default async function () {
	await runScenario(driver);
	await testCreate();
	await testCreateRefused();
	await testList();
	await testSessions();
	await testFollow();
	await testFiles();
	await testEnds();
	await testNothingLeft(driver);
}
