-- Parts whose small files ClickHouse found damaged when it started: it goes on without them, and reports must not
-- (clickhouse/consistency/damaged-parts.ts). One row without a name, so that each node has one. What is made anew anyway is
-- left out.
-- cluster: by name
CREATE VIEW IF NOT EXISTS damaged_parts AS
SELECT database, table AS name, ifNull(partition_id, 'all') AS partition, d.name AS part
FROM system.detached_parts AS d
WHERE startsWith(d.name, 'broken') AND table != 'incoming_staging' AND NOT startsWith(table, 'rebuild_')
UNION ALL
SELECT '', '', '', '';
