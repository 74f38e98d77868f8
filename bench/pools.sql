-- Pools that differ, for benchmarks: bench_pools(count, share) makes as many, of which
-- about share percent can serve bench_request().  The others fail by one rule each,
-- spread over the rules.

CREATE FUNCTION bench_request() RETURNS jsonb IMMUTABLE LANGUAGE sql AS $$
SELECT '{
  "resources": {"cpu": 4, "memoryMb": 8192, "diskMb": 10240, "gpu": 0},
  "requires": {
    "requiredCapabilities": ["pty", "publicPorts"],
    "forbiddenCapabilities": ["nestedUserNamespaces"],
    "image": {"identity": "agent-v4", "requiredBinaries": ["node"]},
    "isolation": "strong", "egress": "allowlist", "stateDurability": "persistent",
    "restrictions": ["no-host-network"],
    "network": {"ipv6": true},
    "timeout": {"semantics": ["command-lifetime"], "granularityMs": 1000,
                "maxReadyLatencyMs": 30000, "requiredSandboxLifetimeMs": 1800000,
                "completionBudgetMs": 1800000}},
  "region": {"preferred": ["eu-west"], "required": true},
  "routing": {"strategy": "balanced", "latencyObjective": "ready",
              "acquisitionFallback": "allowed", "maxAcquisitionAttempts": 3},
  "placement": {"authority": "provider", "nodeAffinity": null},
  "launch": {"name": "job-7", "env": {"A": "b"}, "labels": {"requestedBy": "app"},
             "createTimeoutSeconds": 120}}'::jsonb
$$;

CREATE FUNCTION bench_pools(count integer, share integer)
RETURNS TABLE (id text, enabled boolean, capabilities jsonb, signals jsonb)
STABLE LANGUAGE sql AS $$
SELECT
	-- Neither the order of registration nor that of the signals is the order of the ids.
	'pool-' || substr(md5(i::text), 1, 8) || '-' || i,
	fault <> 0,
	jsonb_build_object(
		'capabilities',
			CASE WHEN fault = 1 THEN '["pty"]'::jsonb ELSE '["pty", "publicPorts"]'::jsonb END
				|| CASE WHEN fault = 2 THEN '["nestedUserNamespaces"]'::jsonb ELSE '[]'::jsonb END
				|| CASE i % 3
					WHEN 0 THEN '["syncExec", "fileTransfer", "snapshots", "gpuSharing"]'::jsonb
					WHEN 1 THEN '["syncExec", "asyncExec", "reattach"]'::jsonb
					ELSE '["fileTransfer", "lifecycle", "warmLease", "streamingLogs", "stablePid"]'::jsonb
				END,
		'resources', jsonb_build_object(
			'cpu', CASE WHEN fault = 3 THEN 2 ELSE 4 + i % 60 END,
			'memoryMb', CASE WHEN fault = 4 THEN 4096 ELSE 8192 * (1 + i % 16) END,
			'diskMb', 10240 * (1 + i % 7), 'gpu', i % 2),
		'regions',
			CASE WHEN fault = 5 THEN '["ap-south"]'::jsonb ELSE '["eu-west"]'::jsonb END
				|| CASE WHEN i % 2 = 0 THEN '["us-east", "us-west"]'::jsonb ELSE '[]'::jsonb END,
		'image', jsonb_build_object(
			'identity', CASE WHEN fault = 6 THEN 'agent-v3' ELSE 'agent-v4' END,
			'binaries', CASE WHEN fault = 7 THEN '["git"]'::jsonb ELSE '["node", "git", "python3"]'::jsonb END),
		'isolation', CASE WHEN fault = 8 THEN 'process' ELSE 'strong' END,
		'egress', 'allowlist', 'stateDurability', 'persistent',
		'restrictions', '["no-host-network", "no-raw-sockets"]'::jsonb,
		'network', jsonb_build_object('ipv4', true, 'ipv6', fault <> 9, 'mtu', 1500),
		'timeout', jsonb_build_object(
			'semantics', '["command-lifetime", "idle-lifetime"]'::jsonb,
			'granularityMs', CASE WHEN fault = 10 THEN 60000 ELSE 1000 END,
			'maxSandboxLifetimeMs', CASE WHEN i % 5 = 0 THEN NULL ELSE 86400000 END)),
	jsonb_build_object(
		'estimatedCost', round((0.05 + (i * 7919) % 1009 / 1000.0)::numeric, 3),
		'coldStartLatencyMs', 200 + (i * 104729) % 5003,
		'readyLatencyMs', CASE WHEN fault = 11 THEN 90000 ELSE 900 + (i * 15485863::bigint) % 20011 END,
		'completionWithinBudgetRate', 1 - (i * 611953::bigint) % 997 / 20000.0,
		'available', fault <> 12)
FROM (
	SELECT i, CASE WHEN i * 37 % 100 < share THEN -1 ELSE i % 13 END AS fault
	FROM generate_series(0, count - 1) AS i) AS numbered
$$;

CREATE FUNCTION bench_pools_json(count integer, share integer) RETURNS jsonb
STABLE LANGUAGE sql AS $$
SELECT jsonb_agg(jsonb_build_object('id', id, 'enabled', enabled, 'capabilities', capabilities,
                                    'signals', signals))
FROM bench_pools(count, share)
$$;
