import { type Context, Hono, type MiddlewareHandler } from 'hono';
import { secureHeaders } from 'hono/secure-headers';
import type { Links } from '../../accounts/links.ts';
import { escaped, page } from '../../mail/message.ts';
import { readUnsubscribeLink, unsubscribePath } from '../../mail/unsubscribe-link.ts';
import { words } from '../../mail/words.ts';
import type { Limiter } from '../access/limiter.ts';
import { tooMany } from '../access/rate-limit.ts';
import { networkOf } from '../request/caller-address.ts';
import type { HttpEnv } from '../request/env.ts';
import { Problem } from '../request/problems.ts';

export interface UnsubscribeDeps {
  readonly links: Links;
  readonly body: MiddlewareHandler<HttpEnv>;
  /** Counts forged links by address. */
  readonly failures: Limiter;
  /** Notes that a recipient wants no more mails of a schedule. */
  readonly unsubscribe: (schedule: string, recipient: string) => Promise<void>;
}

/**
 * Ends mails to a recipient, by a signed link: POST does it, as mail programs do by one click (RFC 8058). GET, which programs that
 * look for harmful links send, only shows a button.
 */
export function unsubscribeRoutes({ links, body, failures, unsubscribe }: UnsubscribeDeps): Hono<HttpEnv> {
  const app = new Hono<HttpEnv>();
  app.use(unsubscribePath, secured, async (c, next) => {
    c.set('endpoint', unsubscribePath);
    c.header('cache-control', 'no-store');
    await next();
  });
  const whoOf = async (c: Context<HttpEnv>) => {
    const who = readUnsubscribeLink(links, c.req.url);
    if (who) return who;
    const verdict = await failures.consume(networkOf(c.get('address')));
    if (!verdict.allowed) throw tooMany('too many wrong links from this address', verdict);
    return undefined;
  };
  app.get(unsubscribePath, async (c) => {
    const who = await whoOf(c);
    if (!who) return c.html(said(words.page.unknown), 404);
    const button = `<form method="post"><button>${words.page.confirm}</button></form>`;
    return c.html(said(words.page.ask(who.recipient), button));
  });
  app.post(unsubscribePath, body, async (c) => {
    const who = await whoOf(c);
    if (!who) return c.html(said(words.page.unknown), 404);
    await unsubscribe(who.schedule, who.recipient);
    return c.html(said(words.page.done(who.recipient)));
  });
  app.all(unsubscribePath, () => {
    throw new Problem('method_not_allowed', 'this path takes GET and POST', {
      headers: { Allow: 'GET, HEAD, POST' },
    });
  });
  return app;
}

const said = (sentence: string, more = '') =>
  page(words.page.title, [
    `<h1 style="font-size:18px">${words.page.title}</h1><p>${escaped(sentence)}</p>`,
    more,
  ]);

const secured = secureHeaders({
  contentSecurityPolicy: {
    defaultSrc: ["'none'"],
    styleSrc: ["'unsafe-inline'"],
    formAction: ["'self'"],
    baseUri: ["'none'"],
    frameAncestors: ["'none'"],
  },
  referrerPolicy: 'no-referrer',
  strictTransportSecurity: false,
});
