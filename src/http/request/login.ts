/** Why a login is refused, for the log and the metrics; the caller is told some of it. */
export type Refusal =
  | 'missing'
  | 'malformed'
  | 'unknown'
  | 'expired'
  | 'revoked'
  | 'other_family'
  | 'other_purpose'
  | 'forged_link'
  | 'expired_link'
  | 'forged_session'
  | 'other_site'
  | 'other_account';

/** The account that is opened, with the id of the token if it was one, or why the login is refused. */
export type Login =
  | { readonly account: string; readonly id?: string; readonly family: string | null }
  | { readonly refused: Refusal; readonly id?: string };
