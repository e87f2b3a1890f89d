import * as z from 'zod';

const loopback = ['localhost', '127.0.0.1', '[::1]'];
const safe = 'https, or http on this machine';

/** Environment variables of signing in; each message completes the sentence that begins with the variable and its value. */
export const signInVariables = {
  PUBLIC_URL: z
    .string()
    .refine(
      (text) => isSafe(text) && new URL(text).pathname === '/',
      `is not the address of this service in browsers, such as https://reports.example.com: ${safe}`,
    )
    .transform((text) => new URL(text).origin)
    .optional(),
  OIDC_ISSUER: z
    .string()
    .refine(isSafe, `is not the address of an OpenID provider, such as https://login.example.com: ${safe}`)
    .optional(),
  OIDC_CLIENT_ID: z.string().optional(),
  // Sessions are signed with what is made of it.
  OIDC_CLIENT_SECRET: z.string().min(32, 'is shorter than 32 characters').optional(),
  OIDC_ACCOUNTS_CLAIM: z.string().default('accounts'),
  OIDC_SCOPE: z
    .string()
    .regex(/^(.* )?openid( .*)?$/, 'is not a list of scopes with openid, such as openid groups')
    .default('openid'),
};

/** Where people sign in, and what this service is there. */
export interface SignInSettings {
  /** The origin of this service in browsers. */
  readonly publicUrl: string;
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** The claim that names the accounts of a person. */
  readonly accountsClaim: string;
  readonly scope: string;
}

/** The values of the variables, frozen; undefined without a provider. */
export function signInConfig(
  values: z.output<z.ZodObject<typeof signInVariables>>,
): SignInSettings | 'incomplete' | undefined {
  const { PUBLIC_URL: publicUrl, OIDC_ISSUER: issuer } = values;
  const { OIDC_CLIENT_ID: clientId, OIDC_CLIENT_SECRET: clientSecret } = values;
  if (!issuer) return undefined;
  if (!publicUrl || !clientId || !clientSecret) return 'incomplete';
  const { OIDC_ACCOUNTS_CLAIM: accountsClaim, OIDC_SCOPE: scope } = values;
  return Object.freeze({ publicUrl, issuer, clientId, clientSecret, accountsClaim, scope });
}

function isSafe(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password, search, hash } = new URL(text);
  if (username + password + search + hash !== '') return false;
  return protocol === 'https:' || (protocol === 'http:' && loopback.includes(hostname));
}
