import { button, el, menu, refill, select } from '../parts/dom.ts';
import { failureText } from '../parts/notice.ts';
import type { Failure } from '../rows/protocol.ts';
import type { Clock, Opened } from '../state/session.ts';
import { wordOf } from '../words/labels.ts';
import { locale, momentText } from '../words/locale.ts';
import { text } from '../words/text.ts';
import type { Shown } from './download.ts';
import { createSchedule, listSchedules, type Schedule, type Turn, turnSchedule } from './schedules.ts';

const { byMail } = text;

/** The menu for reports by mail: a schedule for the report that is shown, and those that the account has. */
export class MailMenu {
  readonly element: HTMLDetailsElement;
  private readonly session: Opened;
  private readonly shown: () => Shown;
  private readonly said = el('p', { class: 'said', role: 'status' });
  private readonly list = el('ul', { class: 'schedules' });
  private readonly to = el('input', {
    type: 'email',
    multiple: true,
    required: true,
    autocomplete: 'email',
    placeholder: 'anna@example.com, bo@example.com',
  });
  private readonly every = select(byMail.frequencies);
  private readonly period = select(byMail.periods);
  private readonly at = el('input', { type: 'time', value: '06:00', required: true });
  private readonly attach = select({ xlsx: text.take.formats.xlsx, csv: text.take.formats.csv });
  private creating = false;
  private refreshes = 0;

  constructor(session: Opened, shown: () => Shown) {
    this.session = session;
    this.shown = shown;
    const usual = { day: 'yesterday', week: 'last_week', month: 'last_month' };
    this.every.addEventListener('change', () => {
      this.period.value = wordOf(usual, this.every.value);
    });
    const form = el(
      'form',
      {
        onsubmit: (event: Event) => {
          event.preventDefault();
          void this.create();
        },
      },
      field(byMail.to, this.to),
      field(byMail.every, this.every),
      field(byMail.days, this.period),
      field(byMail.at, this.at),
      field(byMail.file, this.attach),
      el('p', { class: 'hint' }, byMail.hint),
      el('button', { class: 'primary' }, byMail.create),
    );
    this.element = menu(
      byMail.label,
      el('div', {}, form, this.said, el('h3', {}, byMail.list), this.list),
      'mail',
    );
    this.element.addEventListener('toggle', () => {
      if (!this.element.open) return;
      this.said.textContent = '';
      void this.refresh();
    });
  }

  private async create(): Promise<void> {
    // Two clicks would make two schedules.
    if (this.creating) return;
    this.creating = true;
    const to = this.to.value.split(',').map((address) => address.trim());
    const answer = await createSchedule(this.session, this.shown(), {
      to,
      every: this.every.value,
      period: this.period.value,
      at: this.at.value,
      attach: this.attach.value,
      language: locale,
    });
    this.creating = false;
    if ('failure' in answer) return this.fail(answer.failure);
    this.to.value = '';
    this.said.textContent = byMail.created;
    await this.refresh();
  }

  private async turn(turn: Turn, { id }: Schedule): Promise<void> {
    const answer = await turnSchedule(this.session, turn, id);
    if ('failure' in answer) return this.fail(answer.failure);
    this.said.textContent = byMail.turned[turn];
    await this.refresh(turn);
  }

  private async refresh(turn?: Turn): Promise<void> {
    const refresh = ++this.refreshes;
    const answer = await listSchedules(this.session);
    if (refresh !== this.refreshes) return;
    if ('failure' in answer) return this.fail(answer.failure);
    const items = answer.result.map((schedule) => this.item(schedule));
    const shown = items.length > 0 ? items : [el('li', { class: 'hint' }, byMail.none)];
    // With the focus at the same place a second Enter would remove the next mail, too.
    if (turn === 'pause' || turn === 'resume') refill(this.list, ...shown);
    else this.list.replaceChildren(...shown);
  }

  private item(schedule: Schedule): HTMLElement {
    const { every, period, at, state, to } = schedule;
    const when = [wordOf(byMail.frequencies, every), wordOf(byMail.periods, period), at].join(', ');
    const other = state === 'paused' ? 'resume' : 'pause';
    const action = (turn: Turn) => button(byMail.turns[turn], () => void this.turn(turn, schedule));
    return el(
      'li',
      {},
      el('strong', {}, titleOf(schedule)),
      el('span', {}, when),
      ...to.map((recipient) =>
        el('span', {}, el('bdi', {}, recipient), `: ${stateOf(schedule, recipient, this.session.clock)}`),
      ),
      state !== 'active' && el('em', {}, byMail.states[state]),
      el('div', { class: 'choices' }, state !== 'ended' && action(other), action('remove')),
    );
  }

  private fail(failure: Failure): void {
    this.said.textContent = failureText(failure);
  }
}

/** `Campaigns: Device, Day` */
function titleOf({ report, body }: Schedule): string {
  const [family = '', by = ''] = report.split('/');
  const parts = by.split('_').filter(Boolean);
  const names = parts.map((part) =>
    part === 'date' ? text.grains[body.time_grain ?? 'day'] : wordOf(text.dimensions, part),
  );
  return [wordOf(text.families, family), names.join(', ')].filter(Boolean).join(': ');
}

/** What has become of the mails to a recipient. */
function stateOf({ not_agreed, left, mails }: Schedule, recipient: string, clock?: Clock): string {
  if (left.includes(recipient)) return byMail.left;
  const last = mails.findLast((mail) => mail.recipient === recipient);
  if (last?.state === 'unknown') return byMail.unknown;
  if (last?.state === 'refused') return byMail.notSent;
  if (not_agreed.includes(recipient)) return byMail.notAgreed;
  return last?.state === 'sent' && last.time
    ? byMail.sent(momentText(Date.parse(last.time), clock))
    : byMail.waiting;
}

function field(label: string, input: HTMLElement): HTMLElement {
  return el('label', {}, el('span', {}, label), input);
}
