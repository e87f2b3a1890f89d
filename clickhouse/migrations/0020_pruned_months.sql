-- Months whose raw events `adtally prune` has folded into sums, or dropped: what was loaded up to pruned_at belongs to no
-- load any more. Written before the first row is folded, so that a prune that is killed errs on the side of refusing.
-- cluster: by month
CREATE TABLE IF NOT EXISTS pruned_months
(
    -- yyyymm
    month UInt32,
    -- Not before the load time of any of these events, whichever server's clock that is from.
    pruned_at SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = AggregatingMergeTree
ORDER BY month;
