// Agent37: plain HTTP, for there is no official client

import assert from 'node:assert/strict';

import { alive, fault, origin, requestsDuring, reset, withQuota, withSettings } from '../emulator.mjs';
import {
	everyByte, longScript, noise, open, runScenario, testNothingLeft, testWithBox, waitingScript,
} from '../scenario.mjs';
import { test } from '../tap.mjs';

// A command is an argument of a shell, and Linux takes none of more than 128 KiB.
const LONGEST_ARGUMENT = 128 * 1024;

// An answer has no more than this of each stream.
const MOST_OUTPUT = 512 * 1024;

// How `timeout` says that it ended a command.
const TIMED_OUT = 124;

class Failure extends Error {
	constructor(status, code) {
		super(`${status} ${code}`);
		this.status = status;
		this.code = code;
	}
}

class Timeout extends Error {}

const failed = (status, code) => (error) =>
	error instanceof Failure && error.status === status && error.code === code;

function quote(text) {
	return `'${text.replaceAll("'", "'\\''")}'`;
}

async function succeeded(answer) {
	if (answer.ok)
		return answer;
	const { error } = await answer.json();
	throw new Failure(answer.status, error.code ?? error);
}

class Client {
	constructor(key) {
		this.key = key;
		this.jobs = 0;
	}

	// The hosting plane.
	async ask(method, path, body) {
		const answer = await fetch(`${origin}/agent37/v1/instances${path}`, {
			method,
			headers: {
				authorization: `Bearer ${this.key}`,
				...(body && { 'content-type': 'application/json' }),
			},
			body: body && JSON.stringify(body),
			redirect: 'error',
		});
		return (await succeeded(answer)).json();
	}

	// The instance plane.
	async reach(box, method, path, query, body) {
		return succeeded(await fetch(`${box.url}${path}?${new URLSearchParams(query)}`, {
			method,
			headers: {
				'x-agent37-key': this.key,
				...(body && { 'content-type': 'application/octet-stream' }),
			},
			body,
			redirect: 'error',
		}));
	}

	create({ labels, env, ...more } = {}) {
		return this.ask('POST', '', { metadata: labels, env, ...more });
	}

	async list() {
		return (await this.ask('GET', '')).data;
	}

	async find(labels) {
		return (await this.list())
			.filter(({ metadata }) =>
				Object.entries(labels).every(([name, value]) => metadata?.[name] === value))
			.map((box) => box.id);
	}

	get(id) {
		return this.ask('GET', `/${id}`);
	}

	async exists(id) {
		try {
			await this.get(id);
			return true;
		} catch (error) {
			if (failed(404, 'not_found')(error))
				return false;
			throw error;
		}
	}

	async exec(box, command) {
		const { exit_code: exitCode, ...rest } = await this.ask('POST', `/${box.id}/exec`, { command });
		return { exitCode, ...rest };
	}

	// Directory, variables and time are for the text of the command to see to.
	async runApart(box, script, { env = {}, cwd, timeout } = {}) {
		let command = script;
		if (script.length >= LONGEST_ARGUMENT / 2) {
			await this.upload(box, '/tmp/script', Buffer.from(script));
			command = 'sh /tmp/script';
		}
		if (timeout)
			command = `timeout -k 5 ${timeout} sh -c ${quote(command)}`;
		for (const [name, value] of Object.entries(env))
			command = `export ${name}=${quote(value)}\n${command}`;
		if (cwd)
			command = `cd ${quote(cwd)} || exit 1\n${command}`;
		const { stdout, stderr, exitCode } = await this.exec(box, command);
		if (timeout && exitCode === TIMED_OUT)
			throw new Timeout();
		return { stdout, stderr, exitCode };
	}

	// Output that an answer cannot hold is left in a file and fetched from there.
	async run(box, script, options) {
		let { stdout, stderr, exitCode } = await this.runApart(box, script, options);
		if (stdout.length >= MOST_OUTPUT) {
			await this.runApart(box, `{ ${script}\n} >/tmp/output`, options);
			stdout = (await this.download(box, '/tmp/output')).toString();
		}
		return { output: stdout + stderr, exitCode };
	}

	// Nothing of the provider's: a process that is left behind, and its files.
	async start(box, script) {
		const job = `/tmp/job-${++this.jobs}`;
		await this.exec(box, `nohup sh -c ${quote(`( ${script} ); echo $? >${job}.part; mv ${job}.part ${job}.end`)} ` +
			`>${job}.out 2>${job}.err </dev/null &`);
		return job;
	}

	async status(box, job) {
		const { stdout } = await this.exec(box, `cat ${job}.end`);
		return stdout === '' ? undefined : Number(stdout);
	}

	async logs(box, job) {
		return {
			stdout: (await this.download(box, `${job}.out`)).toString(),
			stderr: (await this.download(box, `${job}.err`)).toString(),
		};
	}

	async follow(box, job, heard) {
		let known = 0;
		for (;;) {
			const ended = await this.status(box, job) !== undefined;
			const logs = await this.logs(box, job);
			if (logs.stdout.length > known)
				heard(logs.stdout.slice(known));
			known = logs.stdout.length;
			if (ended)
				return logs;
		}
	}

	async upload(box, path, bytes) {
		const written = await (await this.reach(box, 'PUT', '/v1/files/content', { path }, bytes)).json();
		assert.equal(written.size, bytes.length);
	}

	async download(box, path) {
		const answer = await this.reach(box, 'GET', '/v1/files/content', { path, disposition: 'attachment' });
		return Buffer.from(await answer.arrayBuffer());
	}

	home() {
		return '/';
	}

	async stop(box) {
		assert.deepEqual(await this.ask('POST', `/${box.id}/stop`), { id: box.id, status: 'stopped' });
	}

	async resume(box) {
		assert.deepEqual(await this.ask('POST', `/${box.id}/start`), { id: box.id, status: 'running' });
	}

	async destroy(box) {
		assert.deepEqual(await this.ask('DELETE', `/${box.id}`), { id: box.id, deleted: true });
	}

	async close() {}
}

const driver = {
	name: 'agent37',
	connect: (key) => new Client(key),
	errors: {
		refused: failed(401, 'invalid_api_key'),
		denied: failed(403, 'ip_not_allowed'),
		limited: failed(429, 'rate_limited'),
		timeout: Timeout,
		gone: failed(404, 'not_found'),
		missing: failed(404, 'file_not_found'),
	},
};

// Creating

async function testCreate() {
	await test('agent37: the requests of a life', async () => {
		const client = open(driver, 'paths');
		const requests = await requestsDuring(async () => {
			const box = await client.create({ labels: { a: '1' } });
			await client.stop(box);
			await client.resume(box);
			await client.exec(box, 'true');
			await client.upload(box, '/tmp/a b', Buffer.from('x'));
			await client.destroy(box);
		});
		assert.deepEqual(requests.map((one) =>
			`${one.op} ${one.method} ${one.path.replace(/\/[a-z0-9]{10}(?=\/|$)/, '/ID')}`), [
			'create POST /agent37/v1/instances',
			'stop POST /agent37/v1/instances/ID/stop',
			'start POST /agent37/v1/instances/ID/start',
			'run POST /agent37/v1/instances/ID/exec',
			'upload PUT /agent37-instance/ID/v1/files/content?path=%2Ftmp%2Fa+b',
			'delete DELETE /agent37/v1/instances/ID',
		]);
		assert.equal(requests[0].headers.authorization, 'Bearer ***');
		assert.equal(requests[1].headers['content-length'], '0');
		assert.equal(requests[1].headers['content-type'], undefined);
		assert.equal(requests[4].headers['x-agent37-key'], '***');
	});
	await testWithBox(driver, 'create: what an instance is told to be', async (client, box) => {
		const { id, url, created, image_ref: image, image_digest: digest, ...rest } = await client.get(box.id);
		assert.match(id, /^[a-z0-9]{10}$/);
		assert.equal(url, `${origin}/agent37-instance/${id}`);
		assert.ok(Math.abs(created - Date.now() / 1000) < 600);
		assert.deepEqual(rest, {
			status: 'running',
			status_reason: null,
			template: 'my-agent@2',
			template_revision: null,
			resources: { cpu: 4, memory: 8, disk: 20 },
			domain_urls: [],
			public_ports: [],
			user: 'u_882',
			name: 'ü',
			metadata: { 'a b&c=d/é': '100%' },
			auto_sleep: true,
			idle_timeout_seconds: 600,
			past_due: false,
		});
	}, {
		template: 'my-agent@2', resources: { cpu: 4, memory: 8, disk: 20 }, user: 'u_882', name: 'ü',
		labels: { 'a b&c=d/é': '100%' }, auto_sleep: true, idle_timeout_seconds: 600,
	});
	await test('agent37: a create that is given up leaves an instance', async () => {
		const client = open(driver, 'late');
		await withSettings('agent37', { delayMs: 600_000 }, async () => {
			const gone = new AbortController();
			const create = fetch(`${origin}/agent37/v1/instances`, {
				method: 'POST',
				headers: { authorization: `Bearer ${client.key}` },
				body: JSON.stringify({ metadata: { late: 'yes' } }),
				signal: gone.signal,
			});
			let found = [];
			while (found.length === 0)
				found = await client.find({ late: 'yes' });
			gone.abort();
			await assert.rejects(create);
			assert.equal((await client.get(found[0])).status, 'provisioning');
			await assert.rejects(client.destroy({ id: found[0] }), failed(409, 'try_again'));
		});
		assert.equal((await alive('agent37')).length, 1);
		await reset();
	});
}

async function testCreateRefused() {
	const client = open(driver, 'refused');
	const refused = async (name, params, expected) => test(`agent37: create with ${name}`, async () => {
		await assert.rejects(client.create(params), expected);
		assert.deepEqual(await client.list(), []);
	});
	await refused('an unknown template', { template: 'no-such-template' }, failed(400, 'invalid_request'));
	await refused('a shape there is not', { resources: { cpu: 3, memory: 4 } }, failed(400, 'invalid_request'));
	await refused('a lower-case variable', { env: { lower: 'x' } }, failed(400, 'invalid_request'));
	await refused('a reserved variable', { env: { AGENT37_INSTANCE_ID: 'x' } }, failed(400, 'invalid_request'));
	await refused('too much metadata', { labels: { a: 'x'.repeat(4096) } }, failed(400, 'invalid_request'));
	await test('agent37: create above the limit, and without a place for it', async () => {
		await withQuota('agent37', { sandboxes: 1 }, async () => {
			const box = await client.create();
			await assert.rejects(client.create(), failed(409, 'instance_limit_reached'));
			await client.destroy(box);
		});
		await withQuota('agent37', { cpu: 1 }, () =>
			assert.rejects(client.create(), failed(503, 'no_capacity')));
		assert.deepEqual(await client.list(), []);
	});
	await test('agent37: create that fails leaves an instance', async () => {
		await withSettings('agent37', { startError: 'no disk' }, () =>
			assert.rejects(client.create({ labels: { a: '1' } }), failed(502, 'provisioning_failed')));
		const [box] = await client.list();
		assert.equal(box.status, 'failed');
		assert.equal(box.status_reason.detail, 'no disk');
		assert.deepEqual(box.metadata, { a: '1' });
		await client.destroy(box);
		assert.deepEqual(await client.list(), []);
	});
}

async function testList() {
	await test('agent37: list, newest first', async () => {
		const client = open(driver, 'list');
		const made = [];
		for (let i = 0; i < 5; i++)
			made.unshift(await client.create({ labels: { n: `${i}` } }));
		assert.deepEqual((await client.list()).map((box) => box.id), made.map((box) => box.id));
		await client.stop(made[2]);
		assert.equal((await client.list())[2].status, 'stopped');
		for (const box of made)
			await client.destroy(box);
		assert.deepEqual(await client.list(), []);
	});
}

// Commands

async function testCommands() {
	await testWithBox(driver, 'command: what is not taken', async (client, box) => {
		for (const body of [{}, { command: 7 }, { command: 'a\0b' }, { command: 'true', timeout: 5 }])
			await assert.rejects(client.ask('POST', `/${box.id}/exec`, body), failed(400, 'invalid_request'));
		assert.equal((await client.exec(box, longScript(LONGEST_ARGUMENT, 'true'))).exitCode, 126);
		const long = longScript(LONGEST_ARGUMENT - 200, 'echo end');
		assert.equal((await client.exec(box, long)).stdout, 'end\n');
	});
	await testWithBox(driver, 'command: output without its middle', async (client, box) => {
		const whole = await client.exec(box, `head -c ${MOST_OUTPUT} /dev/zero | tr "\\0" x`);
		assert.deepEqual([whole.stdout.length, whole.truncated], [MOST_OUTPUT, false]);
		const cut = await client.exec(box, `echo begin; head -c ${MOST_OUTPUT} /dev/zero | tr "\\0" x; echo end`);
		assert.deepEqual([cut.stdout.length, cut.truncated], [MOST_OUTPUT, true]);
		assert.match(cut.stdout, /^begin\nx+\n.*\nx+end\n$/);
	});
	await testWithBox(driver, 'command: at the limit', async (client, box) => {
		await withSettings('agent37', { execLimitMs: 300 }, () =>
			assert.rejects(client.exec(box, waitingScript('/tmp/go', ':', 'echo done >/tmp/done')),
				failed(502, 'provisioning_failed')));
		await client.exec(box, waitingScript('/tmp/done', 'touch /tmp/go', ':'));
		assert.equal((await client.exec(box, 'cat /tmp/done')).stdout, 'done\n');
	});
	await testWithBox(driver, 'command: an answer that is lost', async (client, box) => {
		await fault({ provider: 'agent37', op: 'run', action: 'reset-after-work' });
		await assert.rejects(client.exec(box, 'touch /tmp/ran'), TypeError);
		assert.equal((await client.exec(box, 'test -e /tmp/ran')).exitCode, 0);
	});
	await testWithBox(driver, 'command: until something answers', async (client, box) => {
		const restarted = (bootDelayMs, body) => withSettings('agent37', { bootDelayMs }, async () => {
			await client.stop(box);
			await client.resume(box);
			await body();
		});
		await restarted(600_000, () =>
			assert.rejects(client.exec(box, 'true'), failed(502, 'container_unreachable')));
		await restarted(200, async () => {
			for (let output = ''; output === '';)
				try {
					output = (await client.exec(box, 'echo up')).stdout;
				} catch (error) {
					assert.ok(failed(502, 'container_unreachable')(error), error);
				}
		});
	});
}

// Sleep, which needs a second of it

async function testSleep() {
	await withSettings('agent37', { idleMinimumSeconds: 1 }, () =>
		testWithBox(driver, 'sleep: a command does not wake it, a file does', async (client, box) => {
			await client.upload(box, '/tmp/kept', everyByte);
			while ((await client.get(box.id)).status !== 'sleeping');
			assert.ok((await client.get(box.id)).slept_at >= box.created);
			await assert.rejects(client.exec(box, 'true'), failed(400, 'invalid_request'));
			await client.ask('PATCH', `/${box.id}`, { idle_timeout_seconds: 600 });
			assert.deepEqual(await client.download(box, '/tmp/kept'), everyByte);
			assert.equal((await client.get(box.id)).status, 'running');
		}, { auto_sleep: true, idle_timeout_seconds: 1 }));
}

// Files

async function testFiles() {
	await testWithBox(driver, 'files: what comes in chunks is lost', async (client, box) => {
		const answer = await fetch(`${box.url}/v1/files/content?path=/tmp/chunked`, {
			method: 'PUT',
			headers: { 'x-agent37-key': client.key },
			body: new Blob([noise(100_000)]).stream(),
			duplex: 'half',
		});
		assert.equal(answer.status, 200);
		assert.equal((await answer.json()).size, 0);
		assert.equal((await client.download(box, '/tmp/chunked')).length, 0);
	});
	await testWithBox(driver, 'files: not over another', async (client, box) => {
		const put = (query) => client.reach(box, 'PUT', '/v1/files/content', { path: '~/a', ...query }, 'x');
		await put({ overwrite: false });
		await assert.rejects(put({ overwrite: false }), failed(409, 'file_exists'));
		await put({});
	});
	await testWithBox(driver, 'files: a program of the customer has none', async (client, box) => {
		const answer = await fetch(`${box.url}/v1/files?path=/tmp`, { headers: { 'x-agent37-key': client.key } });
		assert.equal(answer.status, 404);
		assert.equal((await client.exec(box, 'echo runs')).stdout, 'runs\n');
	}, { template: 'custom-agent' });
	await testWithBox(driver, 'files: the key in the wrong place', async (client, box) => {
		const health = (headers) => fetch(`${box.url}/v1/health`, { headers }).then(({ status }) => status);
		const good = { 'x-agent37-key': client.key };
		assert.equal(await health(good), 200);
		assert.equal(await health({ authorization: `Bearer ${client.key}` }), 200);
		assert.equal(await health({ authorization: `Bearer ${client.key}`, 'x-agent37-key': 'bad-key' }), 401);
		assert.equal(await health({}), 401);
		assert.equal((await fetch(`${origin}/agent37/v1/instances`, { headers: good })).status, 401);
	});
}

export default async function () {
	await runScenario(driver);
	await testCreate();
	await testCreateRefused();
	await testList();
	await testCommands();
	await testSleep();
	await testFiles();
	await testNothingLeft(driver);
}
