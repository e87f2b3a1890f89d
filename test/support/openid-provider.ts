import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import Provider, { type Configuration } from 'oidc-provider';
import { afterAll, beforeAll, vi } from 'vitest';
import { freePort } from '../../bench/harness/free-ports.ts';

export const clientSecret = 'a secret of the client, which nobody sees';

/**
 * An OpenID provider of its own for the tests of a file, at which everybody may sign in without a password.
 * @param people by subject: what the provider says of each
 */
export function useOpenIdProvider(
  people: Readonly<Record<string, Readonly<Record<string, unknown>>>>,
  configuration: Configuration = {},
) {
  const wanted: { env: NodeJS.ProcessEnv; others: NodeJS.ProcessEnv }[] = [];
  let server: Server | undefined;
  let away = false;
  let behindMs = 0;
  let codes = 0;
  let host = '';
  beforeAll(async () => {
    const port = await freePort();
    const publicUrl = `http://127.0.0.1:${port}`;
    let answer: (request: IncomingMessage, response: ServerResponse) => void = () => undefined;
    server = createServer((request, response) => {
      if (request.url === '/token') codes++;
      if (away) return void request.socket.destroy();
      if (behindMs > 0 && request.url === '/token') {
        vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - behindMs });
        response.once('finish', () => vi.useRealTimers());
      }
      answer(request, response);
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    answer = answering(`http://${host}`, `${publicUrl}/auth/callback`, people, configuration);
    for (const { env, others } of wanted) {
      Object.assign(env, {
        PORT: String(port),
        PUBLIC_URL: publicUrl,
        OIDC_ISSUER: `http://${host}`,
        OIDC_CLIENT_ID: 'adtally',
        OIDC_CLIENT_SECRET: clientSecret,
        ...others,
      });
    }
  });
  afterAll(() => {
    server?.closeAllConnections();
    server?.close();
  });
  return {
    /** `127.0.0.1:PORT` */
    get host() {
      return host;
    },
    /** How often it was asked for the tokens of a code. */
    get codes() {
      return codes;
    },
    /** Settings of a service where people sign in at this provider; PUBLIC_URL and PORT fit the first that asks. */
    env: (others: NodeJS.ProcessEnv = {}) => {
      const env: NodeJS.ProcessEnv = {};
      wanted.push({ env, others });
      return env;
    },
    /** Answers nobody from now on, or again. */
    hold: (held: boolean) => {
      away = held;
    },
    /** Issues its tokens with a clock that is so far behind. */
    setBack: (ms: number) => {
      behindMs = ms;
    },
  };
}

function answering(
  issuer: string,
  callback: string,
  people: Readonly<Record<string, Readonly<Record<string, unknown>>>>,
  configuration: Configuration,
): (request: IncomingMessage, response: ServerResponse) => void {
  const provider = new Provider(issuer, {
    clients: [{ client_id: 'adtally', client_secret: clientSecret, redirect_uris: [callback] }],
    claims: { openid: ['sub', 'accounts'] },
    cookies: { keys: ['a key of cookies'] },
    jwks: {
      keys: [generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' })],
    },
    ttl: { AccessToken: 600, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_, { uid }) => `/person/${uid}` },
    findAccount: (_, subject) => ({
      accountId: subject,
      claims: async () => ({ sub: subject, ...people[subject] }),
    }),
    // Nobody is asked whether the service may know the accounts.
    loadExistingGrant: async ({ oidc }) => {
      const grant = new provider.Grant({
        clientId: oidc.client?.clientId ?? '',
        accountId: oidc.session?.accountId ?? '',
      });
      grant.addOIDCScope('openid');
      await grant.save();
      return grant;
    },
    ...configuration,
  });
  const callbackOf = provider.callback();
  return async (request, response) => {
    if (!request.url?.startsWith('/person/')) return void callbackOf(request, response);
    if (request.method === 'GET') {
      response.setHeader('content-type', 'text/html');
      const form = '<form method="post"><label>Name <input name="person"></label><button>Go</button></form>';
      return void response.end(
        `<!doctype html><title>Who is there?</title><link rel="icon" href="data:,">${form}`,
      );
    }
    const person = new URLSearchParams(await text(request)).get('person') ?? '';
    const result = person
      ? { login: { accountId: person } }
      : { error: 'access_denied', error_description: 'nobody is there' };
    await provider.interactionFinished(request, response, result);
  };
}

/** A browser without a page: it keeps cookies, and follows addresses one by one. */
export class Visitor {
  readonly cookies = new Map<string, string>();

  async fetch(address: string, init: RequestInit = {}): Promise<Response> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const headers = { cookie, ...init.headers };
    const response = await fetch(address, { redirect: 'manual', ...init, headers });
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (/max-age=0\b|expires=thu, 01 jan 1970/i.test(line)) this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    return response;
  }

  /**
   * Signs in as a person.
   * @param change what somebody in between does to the address of the provider, or to that of the way back
   * @returns where the service leads at the end
   */
  async signIn(
    url: string,
    person: string,
    change: { there?: (address: URL) => void; back?: (address: URL) => void } = {},
  ): Promise<string> {
    let address = new URL(`${url}/auth/sign-in`);
    let init: RequestInit = {};
    for (let step = 0; step < 10; step++) {
      const response = await this.fetch(address.href, init);
      init = {};
      if (response.status === 200 && address.pathname.startsWith('/person/')) {
        init = { method: 'POST', body: new URLSearchParams({ person }) };
        continue;
      }
      const location = response.headers.get('location') ?? `status ${response.status}`;
      if (location.startsWith('status')) throw new Error(`${address} answered with ${location}`);
      if (location.startsWith('/app')) return location;
      address = new URL(location, address);
      if (address.pathname === '/auth') change.there?.(address);
      if (address.pathname === '/auth/callback') change.back?.(address);
    }
    throw new Error(`${address} leads nowhere`);
  }
}
