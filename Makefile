EXTENSION = sbx_router
MODULE_big = sbx_router
DATA = sbx_router--1.0.sql
PGFILEDESC = "sbx_router - route sandbox workloads from SQL"

OBJS = \
	src/sbx_router.o \
	src/core/jsonread.o \
	src/core/jsonlook.o \
	src/core/jsonwalk.o \
	src/core/jsonwrite.o \
	src/core/names.o \
	src/core/isotime.o \
	src/core/normalize.o \
	src/core/vocabulary.o \
	src/core/request.o \
	src/core/profile.o \
	src/core/admission.o \
	src/core/route.o \
	src/core/merge.o \
	src/core/classify.o \
	src/core/level.o \
	src/core/daytonalimits.o \
	src/core/daytonasummary.o \
	src/net/op.o \
	src/net/json.o \
	src/net/base64.o \
	src/net/websocket.o \
	src/net/address.o \
	src/net/quietly.o \
	src/net/libcurl.o \
	src/net/socket.o \
	src/net/transfer.o \
	src/net/trace.o \
	src/net/engine.o \
	src/store/catalog.o \
	src/store/registry.o \
	src/store/policy.o \
	src/store/mapping.o \
	src/store/credential.o \
	src/observe/error.o \
	src/observe/event.o \
	src/observe/catch.o \
	src/observe/hook.o \
	src/flow/call.o \
	src/flow/session.o \
	src/flow/version.o \
	src/flow/cleanup.o \
	src/flow/events.o \
	src/flow/failure.o \
	src/flow/plan.o \
	src/flow/secret.o \
	src/flow/rows.o \
	src/flow/rowsort.o \
	src/flow/registration.o \
	src/flow/seam.o \
	src/flow/policy.o \
	src/flow/candidates.o \
	src/flow/acquire.o \
	src/flow/provision.o \
	src/flow/progress.o \
	src/flow/sandbox.o \
	src/flow/many.o \
	src/flow/runtime.o \
	src/flow/script.o \
	src/flow/files.o \
	src/flow/find.o \
	src/flow/explain.o \
	src/flow/capacity.o \
	src/flow/daytona.o \
	src/flow/builder.o \
	providers/kinds.o \
	providers/steps.o \
	providers/inventory.o \
	providers/script.o \
	providers/script_output.o \
	providers/connect.o \
	providers/background.o \
	providers/marks.o \
	providers/ndjson.o \
	providers/tar.o \
	providers/vercel.o \
	providers/vercel_token.o \
	providers/vercel_session.o \
	providers/vercel_process.o \
	providers/vercel_launch.o \
	providers/vercel_look.o \
	providers/vercel_list.o \
	providers/vercel_power.o \
	providers/vercel_run.o \
	providers/vercel_files.o \
	providers/vercel_destroy.o \
	providers/cbor.o \
	providers/microsandbox.o \
	providers/microsandbox_frame.o \
	providers/microsandbox_agent.o \
	providers/microsandbox_launch.o \
	providers/microsandbox_list.o \
	providers/microsandbox_power.o \
	providers/microsandbox_run.o \
	providers/microsandbox_background.o \
	providers/microsandbox_files.o \
	providers/microsandbox_destroy.o \
	providers/e2b.o \
	providers/e2b_process.o \
	providers/e2b_launch.o \
	providers/e2b_look.o \
	providers/e2b_list.o \
	providers/e2b_power.o \
	providers/e2b_run.o \
	providers/e2b_background.o \
	providers/e2b_files.o \
	providers/e2b_destroy.o \
	providers/agent37.o \
	providers/agent37_hosting.o \
	providers/agent37_instance.o \
	providers/agent37_launch.o \
	providers/agent37_ready.o \
	providers/agent37_look.o \
	providers/agent37_list.o \
	providers/agent37_power.o \
	providers/agent37_run.o \
	providers/agent37_files.o \
	providers/agent37_destroy.o \
	providers/freestyle.o \
	providers/freestyle_call.o \
	providers/freestyle_error.o \
	providers/freestyle_vm.o \
	providers/freestyle_launch.o \
	providers/freestyle_look.o \
	providers/freestyle_list.o \
	providers/freestyle_power.o \
	providers/freestyle_run.o \
	providers/freestyle_store.o \
	providers/freestyle_files.o \
	providers/freestyle_destroy.o \
	providers/daytona.o \
	providers/daytona_toolbox.o \
	providers/daytona_launch.o \
	providers/daytona_ready.o \
	providers/daytona_look.o \
	providers/daytona_list.o \
	providers/daytona_power.o \
	providers/daytona_run.o \
	providers/daytona_background.o \
	providers/daytona_files.o \
	providers/daytona_destroy.o

# The suites that need no emulator and no network.
REGRESS = install registration policy credentials requests routing names registry vectors errors operations privileges triggers events capacity daytona_capacity
REGRESS_OPTS = --inputdir=. --load-extension=sbx_router

# The second one needs the emulator.
ISOLATION = concurrent_registration $(if $(SBX_EMULATOR_URL),rollback)
ISOLATION_OPTS = --inputdir=. --load-extension=sbx_router

# The version of the library: of the distribution, not of the SQL objects.
SBX_VERSION := $(shell sed -n '/"version"/{s/.*: *"\(.*\)".*/\1/p;q}' $(dir $(firstword $(MAKEFILE_LIST)))META.json)
PG_CPPFLAGS = -I$(srcdir)/src -I$(srcdir) -D_GNU_SOURCE -DSBX_ROUTER_VERSION='"$(SBX_VERSION)"'
# Scores are defined in IEEE double without fused multiply-add.
PG_CFLAGS = -ffp-contract=off -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers $(SBX_CFLAGS)
SHLIB_LINK = -lcurl -ljansson -lz -lwslay -lcbor -lcrypto

# PGXS tracks no headers: everything depends on all of them.
SBX_HEADERS = $(wildcard src/*.h src/*/*.h providers/*.h)

EXTRA_CLEAN = build

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

$(OBJS): $(SBX_HEADERS)
