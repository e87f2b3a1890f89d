import { createHash } from 'node:crypto';
import { PassThrough, pipeline, Readable } from 'node:stream';
import { createTransport } from 'nodemailer';
import type { Store } from '../../clickhouse/client.ts';
import type { Links } from '../accounts/links.ts';
import { daysOf } from '../schedules/due.ts';
import {
  isOpen,
  isStuck,
  latestAt,
  type Mail,
  mailsOf,
  type Outcome,
  readMails,
  record,
  type Taken,
  take,
} from '../schedules/mails.ts';
import { answeredOf, tokenOf } from '../schedules/schedules.ts';
import { type Message, messageOf, provisional, questionOf } from './message.ts';
import { agreePath, recipientLink, unsubscribePath } from './recipient-link.ts';
import type { Asked, ReportFile, ReportService } from './report-service.ts';
import { wordsOf } from './words.ts';

export interface SenderOptions {
  readonly store: Store;
  readonly service: ReportService;
  readonly links: Links;
  readonly timezone: string;
  readonly smtpUrl: string;
  /** Of the sender. */
  readonly from: { readonly name: string; readonly address: string };
  /** Where recipients reach the service of reports. */
  readonly publicUrl: string;
  readonly now: () => Date;
  readonly say: (text: string) => void;
}

interface Content {
  readonly message: Message;
  readonly file: ReportFile | undefined;
}

/** A mail server that does not greet for this long has failed. */
const greetingMs = 60_000;
/** Later on, one that says nothing for this long has failed, too: it may look through a whole mail first, RFC 5321 §4.5.3.2.6. */
const silenceMs = 600_000;
/** A message that has not left by then is broken off: other mails wait behind it, and after `sendingMs` --again would send it twice. */
const passageMs = 1_200_000;
const pieceBytes = 65_536;
const longestPauseMinutes = 60;
/** A report that waits for its days is looked at as often. */
const waitingMs = 600_000;

/** Sends what is due. Each mail is taken in the ledger before it is sent, and what came of it is written after. */
export class Sender {
  readonly #options: SenderOptions;
  /** When reports that wait were looked at. */
  readonly #waiting = new Map<string, number>();

  constructor(options: SenderOptions) {
    this.#options = options;
  }

  /**
   * Looks once, at one mail after the other. The service of reports has two hours for each: one to tell whether its days
   * are final, one for text and file (`answerMs` of report-service.ts).
   * @param again a schedule whose mails are sent once more where nobody knows whether they were sent, or the mail server
   * refused them; if an account made it, the questions of that account, too
   * @returns the mails that were not sent although they should be
   */
  async sendDue({
    again,
    signal,
  }: {
    readonly again?: string;
    readonly signal?: AbortSignal;
  } = {}): Promise<number> {
    let failures = 0;
    for (const mail of await this.#toSend(again)) {
      if (signal?.aborted) break;
      try {
        if (!(await this.#send(mail, again))) failures++;
      } catch (error) {
        failures++;
        this.#options.say(
          `${nameOf(mail)}: ${error instanceof Error ? error.message : String(error)}; trying again`,
        );
      }
    }
    return failures;
  }

  /** The mails that are to be sent now, of all or of one account. @param again see {@link sendDue} */
  async #toSend(again: string | undefined, account?: string): Promise<Mail[]> {
    const { store, timezone, now, say } = this.#options;
    const sources = await readMails(store, now(), account);
    const named = sources.schedules.find(({ id }) => id === again);
    const ids = named ? [named.id, answeredOf(named)] : [];
    const mails = mailsOf(sources, now(), timezone);
    const meant = mails.filter((mail) => ids.includes(mail.schedule.id));
    const stuck = new Set(meant.filter((mail) => mail.schedule.state === 'active' && isStuck(mail, now())));
    if (again !== undefined && account === undefined) {
      const taken = meant.flatMap((mail) => (mail.last?.state === 'taken' && !stuck.has(mail) ? mail : []));
      for (const mail of taken)
        say(`${nameOf(mail)}: not sent again, a sender took it at ${mail.last?.at.toISOString()}`);
      if (taken.length + stuck.size === 0 && !meant.some(isOpen))
        say(`no mail of ${again} is to be sent again`);
    }
    return mails.filter((mail) => (isOpen(mail) && this.#isRested(mail)) || stuck.has(mail));
  }

  /** After each attempt that failed the pause is twice as long. */
  #isRested({ last }: Mail): boolean {
    if (!last) return true;
    const pauseMinutes = Math.min(2 ** (last.attempt - 1), longestPauseMinutes);
    return this.#options.now().getTime() - last.at.getTime() >= pauseMinutes * 60_000;
  }

  /** @returns false where it should be sent and was not */
  async #send(listed: Mail, again: string | undefined): Promise<boolean> {
    const { store, now, say } = this.#options;
    // Somebody may have unsubscribed, or removed the schedule, while others were sent.
    const ofAccount = await this.#toSend(again, listed.schedule.account).catch(ofClickHouse);
    const mail = ofAccount.find((each) => nameOf(each) === nameOf(listed));
    if (!mail) return true;
    const { schedule, due, asks } = mail;
    const maker = asks ? undefined : await tokenOf(store, schedule).catch(ofClickHouse);
    if (!asks && !maker) throw new Error(`its token ${schedule.token} is not there`);
    const asked = maker && { schedule, range: daysOf(schedule.period, due.day), maker };
    if (asked && (await this.#waits(mail, asked))) return true;
    const taken = await take(store, mail, now()).catch(ofClickHouse);
    if (!taken) return true;
    const outcome = await (asked ? this.#deliver(taken, asked) : this.#ask(taken));
    const { state, error } = outcome;
    // What is not noted stays taken, so that nobody tries it again.
    const unnoted = await record(store, taken, now(), outcome).catch((failure: Error) => failure);
    const more = unnoted ? `; ClickHouse could not note this: ${unnoted.message}` : '';
    say(`${nameOf(mail)}: ${state}${error ? ` (${error})` : ''}${more}`);
    return state === 'sent' && !unnoted;
  }

  async #waits(mail: Mail, asked: Asked): Promise<boolean> {
    const now = this.#options.now();
    const key = `${mail.schedule.id} ${mail.due.day}`;
    if (now < latestAt(mail)) {
      if (now.getTime() - (this.#waiting.get(key) ?? 0) < waitingMs) return true;
      const summary = await this.#options.service.summary(asked);
      if (provisional(summary, asked.range, wordsOf(mail.schedule.language)) !== undefined) {
        this.#waiting.set(key, now.getTime());
        return true;
      }
    }
    this.#waiting.delete(key);
    return false;
  }

  async #deliver({ mail }: Taken, asked: Asked): Promise<Outcome> {
    const { service, publicUrl, now, timezone } = this.#options;
    return this.#post(mail, async (unsubscribeLink) => {
      const { summary, file } = await service.report(asked);
      const told = { mail, range: asked.range, summary, file, now: now(), timezone, unsubscribeLink };
      return { message: messageOf({ ...told, fileLink: publicUrl + service.link(asked, summary) }), file };
    });
  }

  /** Asks the recipient whether mails may come. */
  #ask({ mail }: Taken): Promise<Outcome> {
    return this.#post(mail, async (unsubscribeLink) => {
      const agreeLink = this.#linkOf(agreePath, mail);
      return { message: questionOf(mail, agreeLink, unsubscribeLink), file: undefined };
    });
  }

  /** The address behind which the recipient of a mail answers. */
  #linkOf(path: typeof agreePath | typeof unsubscribePath, { schedule, recipient }: Mail): string {
    const { links, publicUrl } = this.#options;
    const { language } = schedule;
    return `${publicUrl}${recipientLink(links, path, { schedule: answeredOf(schedule), recipient, language })}`;
  }

  async #post(mail: Mail, make: (unsubscribeLink: string) => Promise<Content>): Promise<Outcome> {
    const { publicUrl, from } = this.#options;
    const { schedule, due, recipient } = mail;
    const passage = { ended: false };
    let place = '';
    try {
      const unsubscribe = this.#linkOf(unsubscribePath, mail);
      const { message, file } = await make(unsubscribe);
      // Alike for all attempts: mail programs show one of two mails with one id.
      const key = JSON.stringify([schedule.id, due.day, recipient]);
      const id = createHash('sha256').update(key).digest('hex').slice(0, 32);
      place = 'the mail server: ';
      await this.#transport(passage).sendMail({
        from,
        to: { name: '', address: recipient },
        ...message,
        messageId: `<${id}@${new URL(publicUrl).hostname}>`,
        headers: {
          'List-Unsubscribe': `<${unsubscribe}>`,
          'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
          'Auto-Submitted': 'auto-generated',
        },
        attachments: file
          ? [{ filename: file.name, contentType: file.type, content: Readable.from(piecesOf(file.content)) }]
          : [],
      });
      return { state: 'sent' };
    } catch (error) {
      return {
        state: stateAfter(error, passage.ended),
        error: `${place}${error instanceof Error ? error.message : error}`,
      };
    }
  }

  /** @param passage told when the last byte of a message leaves */
  #transport(passage: { ended: boolean }) {
    const transport = createTransport({
      url: this.#options.smtpUrl,
      connectionTimeout: greetingMs,
      greetingTimeout: greetingMs,
      socketTimeout: silenceMs,
      disableFileAccess: true,
      disableUrlAccess: true,
    });
    transport.use('stream', ({ message }, done) => {
      message.processFunc((input) => {
        const passed = new PassThrough();
        AbortSignal.timeout(passageMs).onabort = () =>
          passed.destroy(new Error('it takes too long for a whole mail'));
        pipeline(input, passed, () => {});
        passed.once('end', () => {
          passage.ended = true;
        });
        return passed;
      });
      done();
    });
    return transport;
  }
}

/** A whole file would leave at once, into the memory of the socket: nobody could tell what the mail server has of it. */
function* piecesOf(content: Buffer): Generator<Buffer> {
  for (let at = 0; at < content.length; at += pieceBytes) yield content.subarray(at, at + pieceBytes);
}

function ofClickHouse(cause: Error): never {
  throw new Error(`ClickHouse: ${cause.message}`, { cause });
}

const nameOf = ({ schedule, due, recipient, asks }: Mail) =>
  `${asks ? `question of ${schedule.id}` : `${schedule.id} of ${due.day}`} to ${recipient}`;

/**
 * What is known after a failure. A server that answers with an error has not taken the mail, and it cannot have taken one that did
 * not come to its end. RFC 5321 §4.2.1: with 4 it may take it later, with 5 it will not; what it says before it knows the
 * recipient is for the operator to mend.
 */
function stateAfter(error: unknown, ended: boolean): 'unknown' | 'delayed' | 'refused' {
  const { responseCode = 0, command = '' } = Object(error);
  if (responseCode >= 500 && ['RCPT TO', 'DATA'].includes(command)) return 'refused';
  return responseCode >= 400 || !ended ? 'delayed' : 'unknown';
}
