// The emulator's own side: what was asked of it, what it has, how it behaves.

export const origin = process.env.SBX_EMULATOR_URL;

async function control(method, path, body) {
	const answer = await fetch(`${origin}/_control/${path}`, {
		method,
		body: body === undefined ? undefined : JSON.stringify(body),
		headers: { connection: 'close' },
	});
	if (!answer.ok)
		throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
	return answer.json();
}

// Sandboxes that still exist, of all accounts of a provider.
export async function alive(provider) {
	const { sandboxes } = await control('GET', 'audit');
	return sandboxes.filter((one) => one.provider === provider && one.alive);
}

// Runs something and returns the requests that the emulator saw meanwhile.
export async function requestsDuring(body) {
	const { last } = await control('GET', `requests?since=${Number.MAX_SAFE_INTEGER}`);
	await body();
	return (await control('GET', `requests?since=${last}`)).requests;
}

// Changes settings of a provider for as long as something runs.
export async function withSettings(provider, settings, body) {
	const all = await control('POST', 'config', { provider });
	const before = Object.fromEntries(Object.keys(settings).map((name) => [name, all[name]]));
	await control('POST', 'config', { provider, ...settings });
	try {
		return await body();
	} finally {
		await control('POST', 'config', { provider, ...before });
	}
}

// Limits each account of a provider for as long as something runs.
export async function withQuota(provider, quota, body) {
	await control('POST', 'quota', { provider, ...quota });
	try {
		return await body();
	} finally {
		await control('POST', 'quota', { provider });
	}
}

// Adds a rule by which requests go wrong.
export function fault(rule) {
	return control('POST', 'faults', rule);
}

// Forgets everything, also what could not be destroyed yet.
export function reset() {
	return control('POST', 'reset');
}
