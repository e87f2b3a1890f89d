import { setTimeout as delay } from 'node:timers/promises';
import { type Command, Option } from 'commander';
import { reportTimezone } from '../../../ingest/load/report-timezone.ts';
import { linksOf } from '../../accounts/links.ts';
import { ConfigError } from '../../config/config.ts';
import {
  createSchedule,
  pauseSchedule,
  removeSchedule,
  resumeSchedule,
  schedules,
} from '../../operations/schedules.ts';
import { listSchedules } from '../../schedules/schedules.ts';
import { pause, usage } from '../command/arguments.ts';
import { config, counted, line, print, say, stopOnSignal, withStore } from '../command/command.ts';
import { addList, addOperation, operate } from './operate.ts';

/** `schedule` and `mail`: which reports are sent by mail, and the process that sends them. */
export function addMailCommands(program: Command): void {
  const schedule = program
    .command('schedule')
    .description('say which reports are sent by mail, and see whether they were');
  addOperation(schedule, createSchedule, ['account', 'report', 'to'], (given) =>
    operate(createSchedule, given, ({ id }) => print(id)),
  );
  addList(schedule, schedules, ({ id, account, report, every, period, at, to, state, made_by, ...told }) => [
    line([id, account, report, every, period, at, to.join(' '), state, made_by]),
    ...told.not_agreed.map((recipient) => line(['', '', recipient, 'has not agreed yet'])),
    ...told.left.map((recipient) => line(['', '', recipient, 'wants no more'])),
    ...told.mails.map(({ day, recipient, asks, state, time, error }) =>
      line(['', asks ? 'question' : day, recipient, meanings[state], time, error]),
    ),
  ]);
  for (const turn of [pauseSchedule, resumeSchedule, removeSchedule]) {
    addOperation(schedule, turn, ['schedule'], (given) =>
      operate(turn, given, ({ schedule, state }) => say(`schedule ${schedule} is ${state}`)),
    );
  }
  program
    .command('mail')
    .description('send the reports of schedules by mail when they are due, until a signal')
    .option('--once', 'send what is due now and end, for cron')
    .option(
      '--again <schedule>',
      'send its mails, and if an account made it the questions of that account, once more where nobody knows whether they were sent, or the mail server refused them; then end',
    )
    .addOption(new Option('--every <duration>', 'how often to look').argParser(pause).default(60_000, '60s'))
    .action(sendMails);
}

const meanings = {
  waiting: 'waiting',
  taken: 'a sender took it, and it may be under way',
  unknown: 'unknown whether it was sent',
  delayed: 'not sent, tried again',
  refused: 'refused',
  sent: 'sent',
};

interface MailFlags {
  readonly once?: boolean;
  readonly again?: string;
  readonly every: number;
}

/** `mail`: a mail that is being sent when a signal comes is sent to its end. */
async function sendMails({ once, again, every }: MailFlags): Promise<void> {
  const settings = config();
  const { smtpUrl, from, serviceUrl } = settings.mail;
  const { publicUrl } = settings;
  if (!smtpUrl) throw new ConfigError('SMTP_URL: is needed to send mails');
  if (!from) throw new ConfigError('MAIL_FROM: is needed to send mails');
  if (!publicUrl) throw new ConfigError('PUBLIC_URL: is needed for the links in mails');
  const [{ Sender }, { ReportService }, { requireLinks }] = await Promise.all([
    import('../../mail/sender.ts'),
    import('../../mail/report-service.ts'),
    import('../../mail/recipient-link.ts'),
  ]);
  const { signal } = stopOnSignal();
  await withStore(async (store) => {
    if (again !== undefined) {
      const named = (await listSchedules(store)).find(({ id }) => id === again);
      if (!named) throw usage(`--again ${again} is not in the list of schedules`);
      // A question may be due to another schedule of the account.
      if (named.state !== 'active' && !named.madeBy)
        throw usage(`--again ${again} is ${named.state}: nothing of it is sent`);
    }
    const links = linksOf(settings);
    requireLinks(links);
    const sender = new Sender({
      store,
      service: new ReportService(serviceUrl, links, settings.answerTrustMs),
      links,
      timezone: await reportTimezone(store),
      smtpUrl,
      from,
      publicUrl,
      now: () => new Date(),
      say: (text) => say(line([text])),
    });
    if (once || again !== undefined) {
      const failures = await sender.sendDue({ signal, again });
      if (failures > 0) throw new Error(`${counted(failures, 'mail')} could not be sent`);
      return;
    }
    say('looking for mails that are due; Ctrl-C ends it');
    let problem = '';
    while (!signal.aborted) {
      try {
        await sender.sendDue({ signal });
        problem = '';
      } catch (error) {
        const { message } = error instanceof Error ? error : new Error(String(error));
        // Said once, however long it lasts.
        if (message !== problem) say(`ClickHouse does not tell what is due: ${message}; trying again`);
        problem = message;
      }
      await delay(every, undefined, { signal }).catch(() => {});
    }
  });
}
