/** Why a login is refused, for the log and the metrics; the caller is not told. */
export type Refusal =
  | 'missing'
  | 'malformed'
  | 'unknown'
  | 'expired'
  | 'revoked'
  | 'other_family'
  | 'other_purpose'
  | 'forged_link'
  | 'expired_link';

/** The account that a token opens and the token's id, or why the login is refused. */
export type Login =
  | { readonly account: string; readonly id: string; readonly family: string | null }
  | { readonly refused: Refusal; readonly id?: string };
