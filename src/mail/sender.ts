import { createHash } from 'node:crypto';
import { PassThrough, pipeline } from 'node:stream';
import { createTransport } from 'nodemailer';
import type { Store } from '../../clickhouse/client.ts';
import type { LinkMaker, Links } from '../accounts/links.ts';
import { listTokens } from '../accounts/tokens.ts';
import { daysOf } from '../schedules/due.ts';
import {
  isOpen,
  isStuck,
  latestAt,
  listMails,
  type Mail,
  type Outcome,
  record,
  type Taken,
  take,
} from '../schedules/mails.ts';
import type { Schedule } from '../schedules/schedules.ts';
import { messageOf, provisional } from './message.ts';
import type { Asked, ReportService } from './report-service.ts';
import { unsubscribeLink } from './unsubscribe-link.ts';

export interface SenderOptions {
  readonly store: Store;
  readonly service: ReportService;
  readonly links: Links;
  readonly timezone: string;
  readonly smtpUrl: string;
  /** Of the sender. */
  readonly from: string;
  /** Where recipients reach the service of reports. */
  readonly publicUrl: string;
  readonly now: () => Date;
  readonly say: (text: string) => void;
}

/** A mail server that does not answer for this long has failed. */
const silenceMs = 60_000;
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
   * One look. A report that cannot be read or sent keeps no other one waiting.
   * @param again a schedule whose mails are sent once more where nobody knows whether they were sent, or the mail server
   * refused them
   * @returns the mails that were not sent although they should be
   */
  async sendDue({
    again,
    signal,
  }: {
    readonly again?: string;
    readonly signal?: AbortSignal;
  } = {}): Promise<number> {
    const { store, timezone, now, say } = this.#options;
    const mails = (await listMails(store, now(), timezone)).filter(
      (mail) => (isOpen(mail) && this.#isRested(mail)) || (mail.schedule.id === again && isStuck(mail)),
    );
    let failures = 0;
    for (const mail of mails) {
      if (signal?.aborted) break;
      try {
        if (!(await this.#send(mail))) failures++;
      } catch (error) {
        failures++;
        say(`${nameOf(mail)}: ${error instanceof Error ? error.message : String(error)}; trying again`);
      }
    }
    return failures;
  }

  /** After each attempt that failed the pause is twice as long. */
  #isRested({ last }: Mail): boolean {
    if (!last) return true;
    const pauseMinutes = Math.min(2 ** (last.attempt - 1), longestPauseMinutes);
    return this.#options.now().getTime() - last.at.getTime() >= pauseMinutes * 60_000;
  }

  /** @returns false where it should be sent and was not */
  async #send(mail: Mail): Promise<boolean> {
    const { store, now, say } = this.#options;
    const { schedule, due } = mail;
    const maker = await this.#makerOf(schedule);
    const asked = { schedule, range: daysOf(schedule.period, due.day), maker };
    if (await this.#waits(mail, asked)) return true;
    const taken = await take(store, mail, now());
    if (!taken) return true;
    const outcome = await this.#deliver(taken, asked);
    await record(store, taken, now(), outcome);
    const { state, error } = outcome;
    say(`${nameOf(mail)}: ${state}${error ? ` (${error})` : ''}`);
    return state === 'sent';
  }

  async #waits(mail: Mail, asked: Asked): Promise<boolean> {
    const now = this.#options.now();
    const key = `${mail.schedule.id} ${mail.due.day}`;
    if (now < latestAt(mail)) {
      if (now.getTime() - (this.#waiting.get(key) ?? 0) < waitingMs) return true;
      const summary = await this.#options.service.summary(asked);
      if (provisional(summary, asked.range) !== undefined) {
        this.#waiting.set(key, now.getTime());
        return true;
      }
    }
    this.#waiting.delete(key);
    return false;
  }

  async #makerOf({ account, token }: Schedule): Promise<LinkMaker> {
    const found = (await listTokens(this.#options.store, { account })).find(({ id }) => id === token);
    if (!found) throw new Error(`its token ${token} is not there`);
    return found;
  }

  async #deliver({ mail }: Taken, asked: Asked): Promise<Outcome> {
    const { service, publicUrl, now, timezone } = this.#options;
    const { schedule, due, recipient } = mail;
    const passage = { ended: false };
    try {
      const { summary, file } = await service.report(asked);
      const unsubscribe = `${publicUrl}${unsubscribeLink(this.#options.links, schedule.id, recipient)}`;
      const told = { mail, range: asked.range, summary, file, now: now(), timezone };
      const links = { fileLink: publicUrl + service.link(asked), unsubscribeLink: unsubscribe };
      // Alike for all attempts: mail programs show one of two mails with one id.
      const key = JSON.stringify([schedule.id, due.day, recipient]);
      const id = createHash('sha256').update(key).digest('hex').slice(0, 32);
      try {
        await this.#transport(passage).sendMail({
          from: this.#options.from,
          to: { name: '', address: recipient },
          ...messageOf({ ...told, ...links }),
          messageId: `<${id}@${new URL(publicUrl).hostname}>`,
          headers: {
            'List-Unsubscribe': `<${unsubscribe}>`,
            'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
            'Auto-Submitted': 'auto-generated',
          },
          attachments: file ? [{ filename: file.name, contentType: file.type, content: file.content }] : [],
        });
      } finally {
        file?.content.destroy();
      }
      return { state: 'sent' };
    } catch (error) {
      return {
        state: stateAfter(error, passage.ended),
        error: error instanceof Error ? error.message : String(error),
      };
    }
  }

  /** @param passage told when the last byte of a message leaves */
  #transport(passage: { ended: boolean }) {
    const transport = createTransport({
      url: this.#options.smtpUrl,
      connectionTimeout: silenceMs,
      greetingTimeout: silenceMs,
      socketTimeout: silenceMs,
      disableFileAccess: true,
      disableUrlAccess: true,
    });
    transport.use('stream', ({ message }, done) => {
      message.processFunc((input) => {
        const passed = new PassThrough();
        pipeline(input, passed, (error) => {
          passage.ended = !error;
        });
        return passed;
      });
      done();
    });
    return transport;
  }
}

const nameOf = ({ schedule, due, recipient }: Mail) => `${schedule.id} of ${due.day} to ${recipient}`;

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
