/*
 * freestyle_run.c
 *		States of a VM, and the windows after which it is paused or deleted.
 *
 * A pause keeps the memory: processes are stopped where they are and go on
 * later.  What is in between lasts no time unless a setting says so.
 */
#include "freestyle.h"

#include <stdlib.h>

struct FreestyleWaiter
{
	EmuRequest *request;
	void (*handle)(EmuRequest *request, EmuSandbox *sandbox);
	FreestyleWaiter *next;
};

static void
auto_delete_struck(void *owner)
{
	freestyle_destroy(owner);
}

/* A window that is zero seconds long is over at once, but not before its answer. */
static void
start_auto_delete(EmuSandbox *sandbox)
{
	FreestyleVm *vm = freestyle_vm(sandbox);

	emu_timer_stop(&vm->auto_delete);
	if (vm->windows.auto_delete != FREESTYLE_NO_WINDOW &&
	    (vm->state == FREESTYLE_PAUSED || vm->state == FREESTYLE_STOPPED))
		emu_timer_start(&vm->auto_delete, vm->windows.auto_delete * 1000,
		                auto_delete_struck, sandbox);
}

/*
 * Windows of one that runs
 */

static void
window_struck(void *owner)
{
	freestyle_pause(owner);
}

/* It is used: from now on it is idle. */
void
freestyle_touch(EmuSandbox *sandbox)
{
	FreestyleVm *vm = freestyle_vm(sandbox);

	emu_timer_stop(&vm->idle);
	if (vm->windows.idle != FREESTYLE_NO_WINDOW && vm->state == FREESTYLE_RUNNING)
		emu_timer_start(&vm->idle, vm->windows.idle * 1000, window_struck, sandbox);
}

int64_t
freestyle_run_ms(const FreestyleVm *vm)
{
	return vm->run_total_ms +
	       (vm->run_since_ms > 0 ? emu_wall_ms() - vm->run_since_ms : 0);
}

static void
start_run_budget(EmuSandbox *sandbox)
{
	FreestyleVm *vm = freestyle_vm(sandbox);
	int64_t rest = INT64_MAX;

	emu_timer_stop(&vm->run_budget);
	if (vm->state != FREESTYLE_RUNNING)
		return;
	if (vm->windows.max_run != FREESTYLE_NO_WINDOW)
		rest = vm->windows.max_run * 1000 - (emu_wall_ms() - vm->run_since_ms);
	if (vm->windows.max_run_total != FREESTYLE_NO_WINDOW &&
	    vm->windows.max_run_total * 1000 - freestyle_run_ms(vm) < rest)
		rest = vm->windows.max_run_total * 1000 - freestyle_run_ms(vm);
	if (rest != INT64_MAX)
		emu_timer_start(&vm->run_budget, rest > 0 ? rest : 0, window_struck, sandbox);
}

/* From the creation on, also when it is set later. */
static void
start_ttl(EmuSandbox *sandbox)
{
	FreestyleVm *vm = freestyle_vm(sandbox);
	int64_t rest = sandbox->created_ms + vm->windows.ttl * 1000 - emu_wall_ms();

	emu_timer_stop(&vm->ttl);
	if (vm->windows.ttl != FREESTYLE_NO_WINDOW)
		emu_timer_start(&vm->ttl, rest > 0 ? rest : 0, auto_delete_struck, sandbox);
}

void
freestyle_set_windows(EmuSandbox *sandbox, const FreestyleWindows *windows)
{
	freestyle_vm(sandbox)->windows = *windows;
	freestyle_touch(sandbox);
	start_run_budget(sandbox);
	start_ttl(sandbox);
	start_auto_delete(sandbox);
}

void
freestyle_stop_clocks(FreestyleVm *vm)
{
	emu_timer_stop(&vm->settle);
	emu_timer_stop(&vm->idle);
	emu_timer_stop(&vm->auto_delete);
	emu_timer_stop(&vm->ttl);
	emu_timer_stop(&vm->run_budget);
}

/*
 * Changes of state
 */

static void
waiters_go_on(EmuSandbox *sandbox)
{
	FreestyleWaiter *waiter = freestyle_vm(sandbox)->waiters;
	FreestyleWaiter *next;

	freestyle_vm(sandbox)->waiters = NULL;
	for (; waiter != NULL; waiter = next)
	{
		EmuRequest *request = waiter->request;

		next = waiter->next;
		waiter->handle(request, sandbox);
		if (request->answer.given)
			emu_request_finish(request);
		free(waiter);
	}
}

void
freestyle_waiters_lose(FreestyleVm *vm)
{
	FreestyleWaiter *waiter = vm->waiters;
	FreestyleWaiter *next;

	vm->waiters = NULL;
	for (; waiter != NULL; waiter = next)
	{
		next = waiter->next;
		freestyle_conflict(waiter->request, "the VM is gone");
		emu_request_finish(waiter->request);
		free(waiter);
	}
}

static void
begin_run(EmuSandbox *sandbox)
{
	FreestyleVm *vm = freestyle_vm(sandbox);

	vm->run_since_ms = emu_wall_ms();
	if (vm->frozen && sandbox->guest != NULL)
		emu_guest_freeze(sandbox->guest, false);
	vm->frozen = false;
	freestyle_touch(sandbox);
	start_run_budget(sandbox);
	waiters_go_on(sandbox);
}

static void
end_run(EmuSandbox *sandbox)
{
	FreestyleVm *vm = freestyle_vm(sandbox);
	EmuResources disk = {0, 0, sandbox->resources.disk};

	emu_sandbox_reserve(sandbox, &disk);
	emu_sandbox_hold_slot(sandbox, false);
	start_auto_delete(sandbox);
	vm->updated_ms = emu_wall_ms();
}

static void
settled(void *owner)
{
	EmuSandbox *sandbox = owner;
	FreestyleVm *vm = freestyle_vm(sandbox);

	vm->state = vm->next_state;
	if (vm->state == FREESTYLE_RUNNING)
		begin_run(sandbox);
	else
		end_run(sandbox);
}

static void
change(EmuSandbox *sandbox, FreestyleState meanwhile, FreestyleState next,
       int64_t delay_ms)
{
	FreestyleVm *vm = freestyle_vm(sandbox);

	vm->state = meanwhile;
	vm->next_state = next;
	vm->updated_ms = emu_wall_ms();
	if (delay_ms > 0)
		emu_timer_start(&vm->settle, delay_ms, settled, sandbox);
	else
		settled(sandbox);
}

/* For the first time or again. */
void
freestyle_boot(EmuSandbox *sandbox, int64_t delay_ms)
{
	emu_timer_stop(&freestyle_vm(sandbox)->auto_delete);
	emu_sandbox_reserve(sandbox, &sandbox->resources);
	emu_sandbox_hold_slot(sandbox, true);
	change(sandbox, FREESTYLE_STARTING, FREESTYLE_RUNNING, delay_ms);
}

static void
leave_run(EmuSandbox *sandbox)
{
	FreestyleVm *vm = freestyle_vm(sandbox);

	emu_timer_stop(&vm->idle);
	emu_timer_stop(&vm->run_budget);
	vm->run_total_ms = freestyle_run_ms(vm);
	vm->run_since_ms = 0;
}

void
freestyle_pause(EmuSandbox *sandbox)
{
	FreestyleVm *vm = freestyle_vm(sandbox);

	leave_run(sandbox);
	if (sandbox->guest != NULL)
		emu_guest_freeze(sandbox->guest, true);
	vm->frozen = true;
	change(sandbox, FREESTYLE_PAUSING, FREESTYLE_PAUSED, freestyle_config.pause_delay);
}

/* The memory is lost, the files are not. */
void
freestyle_power_off(EmuSandbox *sandbox)
{
	leave_run(sandbox);
	if (sandbox->guest != NULL)
		emu_guest_stop(sandbox->guest);
	change(sandbox, FREESTYLE_STOPPED, FREESTYLE_STOPPED, 0);
}

/*
 * Starting again
 */

static bool
budget_spent(const FreestyleVm *vm)
{
	return vm->windows.max_run_total != FREESTYLE_NO_WINDOW &&
	       freestyle_run_ms(vm) >= vm->windows.max_run_total * 1000;
}

/* Answers itself and returns false if that cannot be. */
bool
freestyle_start(EmuRequest *request, EmuSandbox *sandbox)
{
	const FreestyleVm *vm = freestyle_vm(sandbox);
	const char *no_room;

	if (vm->state == FREESTYLE_RUNNING || vm->state == FREESTYLE_STARTING)
		return true;
	no_room = freestyle_no_room(sandbox->account, sandbox, &sandbox->resources);
	if (vm->state == FREESTYLE_PAUSING)
		freestyle_conflict(request, "the VM is in transition");
	else if (freestyle_config.allowance_spent)
		freestyle_fail(request, 429, "LIMIT_EXCEEDED", "the allowance is used up");
	else if (budget_spent(vm))
		freestyle_conflict(request, "the run budget is spent");
	else if (no_room != NULL)
		freestyle_conflict(request, no_room);
	else
	{
		freestyle_boot(sandbox, freestyle_config.start_delay);
		return true;
	}
	return false;
}

/* What is paused wakes for it, what is stopped or in transition does not. */
void
freestyle_when_running(EmuRequest *request, EmuSandbox *sandbox,
                       void (*handle)(EmuRequest *request, EmuSandbox *sandbox))
{
	FreestyleVm *vm = freestyle_vm(sandbox);
	FreestyleWaiter *waiter;

	if (vm->state != FREESTYLE_RUNNING && vm->state != FREESTYLE_PAUSED)
		freestyle_conflict(request, vm->state == FREESTYLE_STOPPED
		                                ? "the VM is stopped"
		                                : "the VM is in transition");
	else if (vm->state == FREESTYLE_PAUSED && !freestyle_start(request, sandbox))
		return;
	else if (vm->state == FREESTYLE_RUNNING)
	{
		freestyle_touch(sandbox);
		handle(request, sandbox);
	}
	else
	{
		waiter = emu_alloc(sizeof(FreestyleWaiter));
		waiter->request = request;
		waiter->handle = handle;
		waiter->next = vm->waiters;
		vm->waiters = waiter;
	}
}
