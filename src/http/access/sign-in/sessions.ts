import { hkdfSync } from 'node:crypto';
import type { Context } from 'hono';
import { deleteCookie, getCookie, setCookie } from 'hono/cookie';
import { sign, verify } from 'hono/jwt';
import { JwtTokenExpired } from 'hono/utils/jwt/types';
import * as z from 'zod';
import type { SignInSettings } from '../../../config/sign-in.ts';
import type { HttpEnv } from '../../request/env.ts';
import type { Refusal } from '../../request/login.ts';
import type { OtherWay } from '../authentication.ts';
import type { KnownSignOuts } from './known-sign-outs.ts';

/** How long a session lasts; then the provider is asked again who the person is and what they may see. */
const sessionSeconds = 8 * 3600;
/** How long a person may take at the provider. */
const attemptSeconds = 600;
/** Browsers keep 4,096 bytes of a cookie, name and attributes included. */
const maxCookieBytes = 3_800;

const openedSchema = z.tuple([z.string(), z.string().nullable()]);
const sessionSchema = z.object({
  /** The subject, as the provider calls the person. */
  sub: z.string(),
  /** Accounts, each with the one family that is open, or null for all. */
  accounts: z.array(openedSchema),
  /** The last time before the session that the person signed out everywhere. */
  after: z.string(),
});
const attemptSchema = z.object({ state: z.string(), nonce: z.string(), verifier: z.string() });

export type Opened = z.infer<typeof openedSchema>;
export type Session = z.infer<typeof sessionSchema>;
/** What a browser keeps while its person is at the provider. */
export type Attempt = z.infer<typeof attemptSchema>;

/**
 * Sessions of people who signed in at the provider. A session is what its cookie says, signed, until it expires or its
 * person signs out everywhere; nothing of it is stored.
 */
export class Sessions {
  readonly #settings: SignInSettings;
  readonly #signOuts: KnownSignOuts;

  constructor(settings: SignInSettings, signOuts: KnownSignOuts) {
    this.#settings = settings;
    this.#signOuts = signOuts;
  }

  /** Begins a session in the browser that asks. @returns whether its cookie is short enough */
  async begin(c: Context, person: string, accounts: readonly Opened[]): Promise<boolean> {
    await this.#signOuts.refresh();
    const session = { sub: person, accounts, after: await this.#signOuts.lastOf(person) };
    return this.#keep(c, 'session', session, sessionSeconds);
  }

  end(c: Context): void {
    this.#forget(c, 'session');
  }

  /** The session of the browser that asks, or why it has none. @throws as `KnownSignOuts` */
  async of(c: Context): Promise<Session | { readonly refused: Refusal }> {
    const kept = await this.#kept(c, 'session');
    if (typeof kept === 'string') return { refused: kept };
    const { data: session } = sessionSchema.safeParse(kept);
    if (!session) return { refused: 'forged_session' };
    return session.after < (await this.#signOuts.lastOf(session.sub)) ? { refused: 'revoked' } : session;
  }

  async keepAttempt(c: Context, attempt: Attempt): Promise<void> {
    await this.#keep(c, 'attempt', attempt, attemptSeconds);
  }

  /** The attempt that the browser began last, which ends with this. */
  async takeAttempt(c: Context): Promise<Attempt | undefined> {
    const kept = await this.#kept(c, 'attempt');
    this.#forget(c, 'attempt');
    return attemptSchema.safeParse(kept).data;
  }

  async #keep(c: Context, use: Use, said: object, seconds: number): Promise<boolean> {
    const exp = Math.floor(Date.now() / 1000) + seconds;
    const value = await sign({ ...said, exp }, this.#keyOf(use), 'HS256');
    if (value.length > maxCookieBytes) return false;
    setCookie(c, nameOf(use), value, { ...this.#attributes(use), maxAge: seconds });
    return true;
  }

  /** What a cookie says, or why it says nothing. */
  async #kept(c: Context, use: Use): Promise<object | Refusal> {
    const value = getCookie(c, nameOf(use), this.#isSecure ? 'host' : undefined);
    if (value === undefined) return 'missing';
    try {
      return await verify(value, this.#keyOf(use), 'HS256');
    } catch (error) {
      return error instanceof JwtTokenExpired ? 'expired' : 'forged_session';
    }
  }

  #forget(c: Context, use: Use): void {
    deleteCookie(c, nameOf(use), this.#attributes(use));
  }

  get #isSecure(): boolean {
    return this.#settings.publicUrl.startsWith('https:');
  }

  #attributes(use: Use) {
    // Only requests of the page bring a session; an attempt comes back with a redirect from another site.
    const sameSite = use === 'session' ? 'Strict' : 'Lax';
    const common = { path: '/', httpOnly: true, sameSite } as const;
    return this.#isSecure ? ({ ...common, secure: true, prefix: 'host' } as const) : common;
  }

  /** A key for each use, so that no cookie passes for another; a changed secret ends all sessions. */
  #keyOf(use: Use): string {
    const { clientSecret, issuer, clientId } = this.#settings;
    const key = hkdfSync('sha256', clientSecret, `${issuer} ${clientId}`, `adtally ${use} 1`, 32);
    return Buffer.from(key).toString('base64url');
  }
}

type Use = 'session' | 'attempt';
const nameOf = (use: Use) => `adtally-${use}`;

/** The header by which the page says which of the person's accounts it asks for. */
const accountHeader = 'adtally-account';

/** The cookie of a session lets the page of this service in, and nothing else. */
export function sessionAuthentication(sessions: Sessions): OtherWay {
  return {
    login: (c) => {
      const asked = c.req.header(accountHeader);
      if (asked === undefined || c.req.header('authorization') !== undefined) return undefined;
      return async () => {
        if (!isOfThisSite(c)) return { refused: 'other_site' };
        const session = await sessions.of(c);
        if ('refused' in session) return session;
        c.set('person', session.sub);
        const opened = session.accounts.find(([account]) => encodeURIComponent(account) === asked);
        return opened ? { account: opened[0], family: opened[1] } : { refused: 'other_account' };
      };
    },
  };
}

/** Whether a page of this service asks. Every browser that shows the page says so, where cookies are safe. */
export function isOfThisSite(c: Context<HttpEnv>): boolean {
  return c.req.header('sec-fetch-site') === 'same-origin';
}
