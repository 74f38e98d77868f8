// The smallest runner that will do: one test after the other, printed as TAP.

const LIMIT_MS = 60_000;

let count = 0;
let failures = 0;

function within(promise, ms) {
	let timer;
	const late = new Promise((_, reject) => {
		timer = setTimeout(() => reject(new Error(`not done after ${ms} ms`)), ms);
	});
	return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

function report(good, name, problem) {
	count++;
	console.log(`${good ? 'ok' : 'not ok'} ${count} - ${name}`);
	if (good)
		return;
	failures++;
	const text = String(problem?.stack ?? problem).slice(0, 2000);
	console.log(text.replace(/^/gm, '#   '));
}

export async function test(name, body) {
	try {
		await within(Promise.resolve().then(body), LIMIT_MS);
		report(true, name);
	} catch (problem) {
		report(false, name, problem);
	}
}

// Prints the plan.  A client that leaves a timer or a socket behind would keep
// a program from ending, so that is the last test: once this is called, there
// is nothing left to do, and the process has to end by itself.
export function finish() {
	process.exitCode = 1;
	const watchdog = setTimeout(() => {
		report(false, 'nothing keeps the process alive', process.getActiveResourcesInfo());
		process.exit(1);
	}, 10_000);
	watchdog.unref();
	process.once('beforeExit', () => {
		report(true, 'nothing keeps the process alive');
		console.log(`1..${count}`);
		process.exit(failures > 0 ? 1 : 0);
	});
}
