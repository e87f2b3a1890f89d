/** Names in reports, and which shard an account is on. */
export const namesTables = ['ad_units', 'campaigns', 'creatives', 'placements', 'sites'];
