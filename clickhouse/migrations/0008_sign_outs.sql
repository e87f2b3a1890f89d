-- When a person who signs in at a provider last signed out everywhere: older sessions are refused. Only the latest version
-- of a person counts.
-- cluster: on every node
CREATE TABLE IF NOT EXISTS sign_outs
(
    person String,
    version DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY person;
