import * as oidc from 'openid-client';
import * as z from 'zod';
import { catalog } from '../../../../catalog/catalog.ts';
import type { Words } from '../../../app/words/en.ts';
import type { SignInSettings } from '../../../config/sign-in.ts';
import { once } from '../../server/packed-document.ts';
import type { Attempt, Opened } from './sessions.ts';

export const callbackPath = '/auth/callback';

/** Why nobody is signed in; the page has the words. */
export type SignInFailure = keyof Words['signIn']['failures'];

/** Who signed in, and what they may see. */
export interface Person {
  readonly subject: string;
  /** Empty where the claim is missing, or names nothing that is an account. */
  readonly accounts: readonly Opened[];
}

/** How long the provider may take for an answer. */
const answerSeconds = 10;

const name = z.string().min(1).max(128);
const names = z.union([name.transform((one) => [one]), z.array(name)]);
/** A text or a list opens all of these accounts; lists by family open one side of them. */
const claim = z.union([
  names.transform((all) => [...new Set(all)].map((account): Opened => [account, null])),
  z.partialRecord(z.enum(Object.keys(catalog.families)), names).transform(ofFamilies),
]);

function ofFamilies(lists: Partial<Record<string, string[]>>): Opened[] {
  const opened = new Map<string, string | null>();
  for (const [family, accounts = []] of Object.entries(lists)) {
    for (const account of new Set(accounts)) opened.set(account, opened.has(account) ? null : family);
  }
  return [...opened];
}

/** The OpenID provider where people sign in: authorization code with PKCE, state and nonce. */
export class Provider {
  readonly #settings: SignInSettings;
  /** What the provider says of itself; asked until it answers. */
  readonly #find: () => Promise<oidc.Configuration>;

  constructor(settings: SignInSettings) {
    this.#settings = settings;
    const { issuer, clientId, clientSecret } = settings;
    this.#find = once(() =>
      oidc.discovery(new URL(issuer), clientId, clientSecret, oidc.ClientSecretBasic(clientSecret), {
        timeout: answerSeconds,
        execute: issuer.startsWith('http:') ? [oidc.allowInsecureRequests] : [],
      }),
    );
  }

  /** Where to send a browser, and what it has to bring back. */
  async begin(): Promise<{ address: URL; attempt: Attempt }> {
    const attempt = {
      state: oidc.randomState(),
      nonce: oidc.randomNonce(),
      verifier: oidc.randomPKCECodeVerifier(),
    };
    const address = oidc.buildAuthorizationUrl(await this.#find(), {
      redirect_uri: this.#settings.publicUrl + callbackPath,
      scope: this.#settings.scope,
      code_challenge: await oidc.calculatePKCECodeChallenge(attempt.verifier),
      code_challenge_method: 'S256',
      state: attempt.state,
      nonce: attempt.nonce,
    });
    return { address, attempt };
  }

  /** @param search what the provider sent the browser back with @throws what the library refuses */
  async finish(search: string, { state, nonce, verifier }: Attempt): Promise<Person> {
    const provider = await this.#find();
    const { publicUrl, accountsClaim } = this.#settings;
    const tokens = await oidc.authorizationCodeGrant(provider, new URL(publicUrl + callbackPath + search), {
      expectedState: state,
      expectedNonce: nonce,
      pkceCodeVerifier: verifier,
      idTokenExpected: true,
    });
    const claims = tokens.claims();
    const subject = claims?.sub ?? '';
    const { userinfo_endpoint } = provider.serverMetadata();
    // Some providers say more there than in the token.
    const said =
      claims?.[accountsClaim] === undefined && userinfo_endpoint
        ? await oidc.fetchUserInfo(provider, tokens.access_token, subject)
        : claims;
    return { subject, accounts: claim.safeParse(said?.[accountsClaim]).data ?? [] };
  }
}

/** What an error of the library means to the person. */
export function failureOf(error: unknown): SignInFailure {
  if (error instanceof oidc.AuthorizationResponseError)
    return error.error === 'access_denied' ? 'refused' : 'failed';
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'OAUTH_JWT_TIMESTAMP_CHECK_FAILED') return 'clock';
  // Without a connection `fetch` throws a TypeError that has a cause.
  const isUnconnected = error instanceof TypeError && error.cause !== undefined;
  const isAway = isUnconnected || code === 'OAUTH_TIMEOUT' || code === 'OAUTH_RESPONSE_IS_NOT_CONFORM';
  return isAway ? 'away' : 'failed';
}
