-- Parts that ClickHouse set aside when it started, because files beside their rows were damaged. It goes on without
-- them, and reports that need them are refused (clickhouse/consistency/damaged-parts.ts). Staging tables are left out:
-- they are filled anew. The last row has no name: by it each shard shows that it has told.
-- cluster: by name
CREATE VIEW IF NOT EXISTS damaged_parts AS
SELECT database, table AS name, ifNull(partition_id, 'all') AS partition, d.name AS part
FROM system.detached_parts AS d
WHERE startsWith(d.name, 'broken') AND table != 'incoming_staging' AND NOT startsWith(table, 'rebuild_')
UNION ALL
SELECT '', '', '', '';
