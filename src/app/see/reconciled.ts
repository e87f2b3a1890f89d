import { familyOf } from '../../../catalog/breakdowns.ts';
import { catalog } from '../../../catalog/catalog.ts';
import { maxFileBytes } from '../../reconcile/limits.ts';
import type { About, CauseName, Status } from '../../reconcile/model/about.ts';
import { button, type Child, el, refill, select } from '../parts/dom.ts';
import { failureText } from '../parts/notice.ts';
import { number, numberHead, scrolling, table } from '../parts/table.ts';
import { asked } from '../rows/asked.ts';
import { metricsOf } from '../state/fields.ts';
import type { Clock, Opened } from '../state/session.ts';
import { columnLabel, figureLabel } from '../words/labels.ts';
import { bytesText, countText, dayText, locale, momentText, rangeText } from '../words/locale.ts';
import { text } from '../words/text.ts';

const words = text.reconciled;

/** Theirs less ours: with signs, and the sum of what each row differs by. */
interface Told {
  readonly net: string;
  readonly total: string;
}

type Figures<Value> = Readonly<Record<string, Value>>;

interface Explained {
  readonly cause: CauseName;
  readonly about: About;
  readonly figures: Figures<Told>;
}

interface Sides {
  readonly ours: string;
  readonly theirs: string;
}

type Row = { readonly day: string; readonly name: string; readonly status: Status } & {
  readonly [member: string]: string | (Sides & { readonly difference: string; readonly unexplained: string });
};

/** As the service writes it; figures and counts as text. */
interface Comparison {
  readonly from: string;
  readonly to: string;
  readonly figures: Figures<Sides & { readonly gap: Told; readonly unexplained: Told }>;
  readonly explained: readonly Explained[];
  readonly untried: readonly string[];
  readonly unreadable: { readonly records: string; readonly first: readonly string[] };
  readonly rows: Readonly<Record<Status, string>>;
  readonly more_differences: string;
  readonly differences: readonly Row[];
}

/** By the ending of a name. */
const types: Readonly<Record<string, string>> = {
  csv: 'text/csv',
  tsv: 'text/tab-separated-values',
  ndjson: 'application/x-ndjson',
  jsonl: 'application/x-ndjson',
  json: 'application/json',
  parquet: 'application/vnd.apache.parquet',
  avro: 'application/avro',
};
const tolerances = [0, 1, 5, 10];

const digits = new Intl.NumberFormat(locale, { maximumFractionDigits: 6 });
const signed = new Intl.NumberFormat(locale, { maximumFractionDigits: 6, signDisplay: 'exceptZero' });
const shares = new Intl.NumberFormat(locale, { style: 'percent', maximumFractionDigits: 1 });
const amountText = (amount: string) => digits.format(amount as `${number}`);
const differenceText = (amount: string) => signed.format(amount as `${number}`);
const isNothing = ({ total }: Told) => Number(total) === 0;

/** Compares a file of the other side with the report, and shows what explains the gap. */
export class Reconciled {
  readonly element = el('dialog', { class: 'explained reconciled', 'aria-label': words.title });
  private readonly session: Opened;
  private readonly file = el('input', {
    type: 'file',
    required: true,
    accept: Object.keys(types)
      .map((ending) => `.${ending}`)
      .join(),
  });
  private readonly tolerance = select(
    Object.fromEntries(tolerances.map((percent) => [percent, shares.format(percent / 100)])),
  );
  private readonly said = el('p', { class: 'said', role: 'status' });
  private readonly outcome = el('div', { class: 'outcome' });
  private family = '';
  private currency: string | undefined;
  private running = new AbortController();

  constructor(session: Opened) {
    this.session = session;
    const form = el(
      'form',
      {
        onsubmit: (event: Event) => {
          event.preventDefault();
          void this.compare();
        },
      },
      el('label', {}, el('span', {}, words.file), this.file),
      el('label', {}, el('span', {}, words.tolerance), this.tolerance),
      el('button', { class: 'primary' }, words.compare),
    );
    this.element.append(
      el('h2', {}, words.title),
      el('p', { class: 'hint' }, words.hint),
      form,
      this.said,
      this.outcome,
      button(text.explained.close, () => this.element.close()),
    );
    // Nobody waits any more.
    this.element.addEventListener('close', () => this.running.abort());
  }

  /** @param currency of the report's money, where it is known */
  open(family: string, currency: string | undefined): void {
    if (family !== this.family) this.forget();
    this.family = family;
    this.currency = currency;
    this.element.showModal();
  }

  private say(said: string, isWrong = false): void {
    this.said.textContent = said;
    this.said.classList.toggle('warning', isWrong);
  }

  private forget(): void {
    this.say('');
    this.outcome.replaceChildren();
  }

  private async compare(): Promise<void> {
    const [file] = this.file.files ?? [];
    if (!file) return;
    this.running.abort();
    const running = new AbortController();
    this.running = running;
    this.forget();
    const type = types[file.name.toLowerCase().split('.').at(-1) ?? ''];
    if (type === undefined) {
      this.say(words.otherFile, true);
      return;
    }
    if (file.size > maxFileBytes) {
      this.say(words.tooLarge(bytesText(maxFileBytes)), true);
      return;
    }
    this.say(words.comparing);
    // A browser does not read a file that was written since it was chosen.
    const bytes = await file.arrayBuffer().catch(() => undefined);
    if (running !== this.running) return;
    if (!bytes) {
      this.file.value = '';
      this.say(words.changed, true);
      return;
    }
    const path = `/v1/${this.family}/reconcile?tolerance=${this.tolerance.value}`;
    const found = await asked<Comparison>(path, this.session, new Blob([bytes]), {
      type,
      signal: running.signal,
    });
    if (running !== this.running) return;
    if (running.signal.aborted) return this.forget();
    if ('failure' in found) {
      this.say(failureText(found.failure), true);
      return;
    }
    const { from, to } = found.result;
    this.say(words.days(file.name, rangeText(from, to)));
    refill(this.outcome, ...this.told(found.result));
  }

  private told(comparison: Comparison): Child[] {
    const { figures, explained, untried, unreadable, rows, differences, more_differences } = comparison;
    const names = metricsOf(this.family).flatMap(({ id }) => (figures[id] ? [id] : []));
    const isEqual = names.every((id) => figures[id] && isNothing(figures[id].gap));
    const unexplained = (id: string) => figures[id]?.unexplained;
    const allExplained = names.every((id) => isNothing(unexplained(id) ?? { net: '0', total: '0' }));
    const isUnread = unreadable.records !== '0';
    const parts = (each: (id: string) => Told | undefined) => this.parts(comparison, names, each);
    const counts = Object.entries(words.status).map(
      ([status, label]) => `${label}: ${amountText(rows[status as Status])}`,
    );
    const causes = explained.map((each) =>
      el(
        'li',
        {},
        el('strong', {}, causeText(each, this.session.clock)),
        parts((id) => each.figures[id]),
      ),
    );
    const left = allExplained ? words.allExplained : explained.length > 0 ? words.left : words.noCause;
    return [
      scrolling(this.totals(names, comparison)),
      el('h3', {}, words.causesTitle),
      isEqual ? el('p', {}, words.equal) : el('ol', { class: 'causes' }, ...causes),
      !isEqual && el('p', { class: !allExplained && 'warning' }, left, !allExplained && parts(unexplained)),
      untried.length > 0 && el('p', { class: 'hint' }, words.untried),
      isUnread && el('p', { class: 'warning' }, words.unreadable(amountText(unreadable.records))),
      isUnread && el('ul', { lang: 'en' }, ...unreadable.first.map((reason) => el('li', {}, reason))),
      el('h3', {}, words.rowsTitle),
      el('p', {}, counts.join(' · ')),
      differences.length > 0 && scrolling(this.rows(names, comparison)),
      more_differences !== '0' && el('p', { class: 'hint' }, words.more(amountText(more_differences))),
    ];
  }

  private label(id: string): string {
    return figureLabel(this.family, id, this.currency);
  }

  /** How much of each figure something is, and its share of the gap. An explanation can leave a difference where none was. */
  private parts(
    { figures }: Comparison,
    names: readonly string[],
    told: (id: string) => Told | undefined,
  ): HTMLElement {
    const texts = names.flatMap((id) => {
      const [gap, part] = [figures[id]?.gap, told(id)];
      if (!gap || !part || isNothing(part)) return [];
      const share = isNothing(gap) ? '' : ` (${shares.format(Number(part.total) / Number(gap.total))})`;
      return [`${this.label(id)} ${amountText(part.total)}${share}`];
    });
    return el('span', { class: 'shares' }, texts.join(', '));
  }

  private totals(names: readonly string[], { figures }: Comparison): HTMLTableElement {
    return table(
      { 'aria-label': words.totals },
      [[el('td'), ...[words.ours, words.theirs, words.difference, words.unexplained].map(numberHead)]],
      names.map((id) => {
        const { ours = '0', theirs = '0', gap, unexplained } = figures[id] ?? {};
        return [
          el('th', { scope: 'row' }, this.label(id)),
          number(amountText(ours)),
          number(amountText(theirs)),
          number(differenceText(gap?.net ?? '0')),
          number(differenceText(unexplained?.net ?? '0')),
        ];
      }),
    );
  }

  private rows(names: readonly string[], { differences, explained }: Comparison): HTMLTableElement {
    const { entity } = familyOf(catalog, this.family);
    const key = catalog.dimensions[entity]?.key ?? '';
    const sides = [
      words.ours,
      words.theirs,
      words.difference,
      ...(explained.length > 0 ? [words.unexplained] : []),
    ];
    const cells = (row: Row, id: string) => {
      const of = row[id];
      if (typeof of !== 'object') return sides.map(() => el('td'));
      const { ours, theirs, difference, unexplained } = of;
      const left = explained.length > 0 ? [differenceText(unexplained)] : [];
      return [amountText(ours), amountText(theirs), differenceText(difference), ...left].map(number);
    };
    const line = (row: Row) => {
      const id = String(row[key] ?? '');
      return [
        el('td', {}, dayText(row.day)),
        el(
          'th',
          { scope: 'row' },
          el('bdi', {}, row.name),
          row.name !== id && el('small', {}, ' ', el('bdi', {}, id)),
        ),
        el('td', {}, words.status[row.status]),
        ...names.flatMap((name) => cells(row, name)),
      ];
    };
    const plain = (label: string) => el('th', { scope: 'col', rowspan: 2 }, label);
    return table(
      { 'aria-label': words.rowsTitle },
      [
        [
          ...[text.columns.start_time, columnLabel(entity), words.state].map(plain),
          ...names.map((id) => el('th', { scope: 'colgroup', colspan: sides.length }, this.label(id))),
        ],
        names.flatMap(() => sides.map(numberHead)),
      ],
      differences.map(line),
    );
  }
}

/** An explanation in a sentence. */
function causeText({ cause, about }: Explained, clock?: Clock): string {
  const { zone = '', our_zone = '', other_zones = [], days = [], their_days = [], names = [] } = about;
  const { loads = [], loaded_after, figures = [] } = about;
  const moment =
    loaded_after === undefined ? '' : momentText(Date.parse(`${loaded_after.replace(' ', 'T')}Z`), clock);
  const { causes, listed } = words;
  switch (cause) {
    case 'time_zone':
      return causes.time_zone(zone, our_zone, few(other_zones));
    case 'missing_day':
      return [
        ...(days.length > 0 ? [causes.missing_day.theirs(few(days.map(dayText)))] : []),
        ...(their_days.length > 0 ? [causes.missing_day.ours(few(their_days.map(dayText)))] : []),
      ].join(' ');
    case 'doubled_day':
      return causes.doubled_day(few(days.map(dayText)));
    case 'other_name':
      return causes.other_name(few(names.map((pair) => words.pair(pair.theirs, pair.ours))));
    case 'corrections':
    case 'late_conversions':
      return [causes[cause](moment), ...(loads.length > 0 ? [listed(few(loads))] : [])].join(' ');
    case 'missing_load':
    case 'doubled_load':
      return causes[cause](few(loads));
    case 'rounding':
      return causes.rounding(figures.map((id) => columnLabel(id)).join(', '));
  }
}

/** The first of a list that may be long. */
function few(texts: readonly string[], most = 5): string {
  const more = texts.length - most;
  return [...texts.slice(0, most), ...(more > 0 ? [words.others(countText(more))] : [])].join(', ');
}
