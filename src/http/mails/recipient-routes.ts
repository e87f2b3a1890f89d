import { type Context, Hono } from 'hono';
import type { Links } from '../../accounts/links.ts';
import { languageOf } from '../../app/words/languages.ts';
import { escaped, page } from '../../mail/message.ts';
import { agreePath, readRecipientLink, unsubscribePath } from '../../mail/recipient-link.ts';
import { type WordsOfLocale, wordsOf } from '../../mail/words.ts';
import { accountOfOwn } from '../../schedules/schedules.ts';
import type { Limiter } from '../access/limiter.ts';
import { tooMany } from '../access/rate-limit.ts';
import { networkOf } from '../request/caller-address.ts';
import type { HttpEnv } from '../request/env.ts';
import { onPath } from '../request/on-path.ts';
import { pageSecurity } from '../server/page-security.ts';

type Note = (schedule: string, recipient: string) => Promise<void>;

export interface RecipientDeps {
  readonly links: Links;
  /** Counts forged links by address, and answers by recipient. */
  readonly failures: Limiter;
  /** Notes that a recipient wants no more mails of a schedule, or of all that an account made. */
  readonly unsubscribe: Note;
  /** Notes that a recipient wants the mails of an account's own schedules. */
  readonly agree: Note;
}

/**
 * Ends mails to a recipient, or begins them, by a signed link: POST does it, as mail programs do by one click (RFC 8058). GET, which
 * programs that look for harmful links send, only shows a button.
 */
export function recipientRoutes({ links, failures, unsubscribe, agree }: RecipientDeps): Hono<HttpEnv> {
  const app = new Hono<HttpEnv>();
  const whoOf = async (c: Context<HttpEnv>) => {
    const who = readRecipientLink(links, c.req.url);
    if (who) return who;
    const verdict = await failures.consume(networkOf(c.get('address')));
    if (!verdict.allowed) throw tooMany('too many wrong links from this address', verdict);
    return undefined;
  };
  const unknown = (c: Context<HttpEnv>) => {
    const language = languageOf(c.req.query('language') ?? '') ?? 'en';
    return c.html(
      said(language, ({ page }) => page.unknown),
      404,
    );
  };
  const route = (path: string, note: Note, textsOf: (words: WordsOfLocale, schedule: string) => Texts) => {
    app.use(path, secured, async (c, next) => {
      c.header('cache-control', 'no-store');
      await next();
    });
    onPath(app, path, { allow: 'GET, HEAD, POST' }, async (c) => {
      const who = await whoOf(c);
      if (!who) return unknown(c);
      const { language, schedule, recipient } = who;
      const { ask, button, done } = textsOf(wordsOf(language), schedule);
      if (c.req.method !== 'POST') {
        const form = `<form method="post"><button>${button}</button></form>`;
        return c.html(said(language, () => ask(recipient), form));
      }
      const verdict = await failures.consume(`${schedule} ${recipient}`);
      if (!verdict.allowed) throw tooMany('too many answers of this recipient', verdict);
      await note(schedule, recipient);
      return c.html(said(language, () => done(recipient)));
    });
  };
  route(unsubscribePath, unsubscribe, ({ page, ofAccount }, schedule) => {
    const account = accountOfOwn(schedule);
    if (account === undefined) return page;
    const { ask, done } = ofAccount;
    return {
      ask: (recipient) => ask(account, recipient),
      button: page.button,
      done: (recipient) => done(account, recipient),
    };
  });
  route(agreePath, agree, ({ question }) => question);
  return app;
}

interface Texts {
  readonly ask: (recipient: string) => string;
  readonly button: string;
  readonly done: (recipient: string) => string;
}

function said(language: string, sentence: (words: WordsOfLocale) => string, more = ''): string {
  const words = wordsOf(language);
  const { title } = words.page;
  return page(language, title, [
    `<h1 style="font-size:18px">${title}</h1><p>${escaped(sentence(words))}</p>`,
    more,
  ]);
}

const secured = pageSecurity({ styleSrc: ["'unsafe-inline'"], formAction: ["'self'"] });
