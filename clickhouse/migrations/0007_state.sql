-- What reports are read from, told by metadata alone, so that answers can be kept as long as they are true. The name
-- dictionaries tell the same of themselves.
--
-- One row for each partition of the rollups, of the confirmations, and of the changes, by which a report of changed days
-- goes. `state` changes with every insert, with every part that a mutation changes, and with a replaced partition: block
-- numbers only grow, and the fifth piece of a part's name is its latest mutation. Merges change it only where block
-- numbers are missing. The folder changes when tables are exchanged. `migrations` is there so that each node has a row.
-- cluster: by name
CREATE VIEW IF NOT EXISTS store_state AS
SELECT
    database,
    table AS name,
    partition_id AS partition,
    splitByChar('/', path)[-3] AS folder,
    min(min_date) AS first_day,
    max(max_date) AS last_day,
    concat(toString(max(max_block_number)), ' ',
        toString(sum(toUInt64OrZero(splitByChar('_', p.name)[5]) * (max_block_number - min_block_number + 1)))) AS state
FROM system.parts AS p
WHERE active AND (endsWith(table, '_date') OR endsWith(table, '_changes') OR table IN ('confirmations', 'migrations'))
GROUP BY database, table, partition_id, folder;
