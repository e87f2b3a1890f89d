import { closedField } from '../choose/closed.ts';
import { controlsOf } from '../choose/controls.ts';
import { filtersOf } from '../choose/filters.ts';
import { MetricsMenu } from '../choose/metrics.ts';
import { button, el } from '../parts/dom.ts';
import { Notice } from '../parts/notice.ts';
import { Rows } from '../rows/client.ts';
import type { Arranged, ChartPoint, Facts, Failure, Progress } from '../rows/protocol.ts';
import { reportRequest, valuesRequest } from '../rows/requests.ts';
import { adjustedDialog } from '../see/adjusted.ts';
import { Cards } from '../see/cards.ts';
import { Chart } from '../see/chart.ts';
import { explainedDialog } from '../see/explained.ts';
import { Freshness } from '../see/freshness.ts';
import { Reconciled } from '../see/reconciled.ts';
import { RowTable } from '../see/table.ts';
import { Toolbar } from '../see/toolbar.ts';
import { bodyOf, sameRows } from '../state/request.ts';
import type { Opened } from '../state/session.ts';
import {
  columnsOf,
  daysOf,
  nextSort,
  ofShown,
  ranksChanges,
  reachesNow,
  type State,
  toHash,
} from '../state/state.ts';
import { MailMenu } from '../take/mail-menu.ts';
import { TakeMenu } from '../take/menu.ts';
import { sendsMails } from '../take/schedules.ts';
import { rowsText } from '../words/labels.ts';
import { bytesText, countText } from '../words/locale.ts';
import { text } from '../words/text.ts';

const barsShown = 8;

/** The report: what is chosen, and what comes of it. Every change of the choice is a step of the history. */
export class Workbench {
  readonly element = el('main', { id: 'main', class: 'bench' });
  private readonly session: Opened;
  private readonly onNewDay: () => void;
  private readonly rows = new Rows();
  private readonly notice = new Notice();
  private readonly unread = el('p', { class: 'unread', role: 'status', hidden: true });
  private readonly chart: Chart;
  private readonly freshness = new Freshness();
  private readonly cards: Cards;
  private readonly controls;
  private readonly closed;
  private readonly filters;
  private readonly metrics: MetricsMenu;
  private readonly toolbar: Toolbar;
  private readonly table: RowTable;
  private readonly take: TakeMenu;
  private readonly figures = el('div', { class: 'figures' });
  private readonly sheet = el('section', { class: 'sheet', 'aria-label': text.table.label });
  private state: State;
  private facts: Facts | undefined;
  private arranged: Arranged | undefined;
  /** Whether all rows are there. */
  private isWhole = false;
  private all = 0;
  private turn = 0;

  /** @param onNewDay called when the day of the session is over, where days are counted */
  constructor(session: Opened, state: State, onNewDay: () => void) {
    this.session = session;
    this.state = state;
    this.onNewDay = onNewDay;
    const choose = (change: Partial<State>) => this.choose(change);
    this.chart = new Chart(choose);
    this.controls = controlsOf(choose, session.today);
    const adjusted = adjustedDialog(session);
    this.closed = closedField(choose, session, () => void adjusted.show(this.state, this.facts?.currency));
    const values = (state: State, field: string) => valuesRequest(state, field, session);
    this.filters = filtersOf(this.rows, choose, values, session.onEnd);
    this.metrics = new MetricsMenu(choose, () => {
      this.table.resetWidths();
      this.draw();
    });
    const taken = () => ({
      state: this.state,
      ids: this.arranged?.ids ?? false,
      arranged: this.arranged,
      all: this.all,
    });
    this.take = new TakeMenu(this.rows, session, taken);
    const explained = explainedDialog(this.rows, session);
    this.toolbar = new Toolbar((find) => this.choose({ find }, true));
    this.cards = new Cards((chart) => this.choose({ chart }));
    this.table = new RowTable(this.rows, {
      onsort: (column) => this.choose({ sort: nextSort(this.state.sort, column) }),
      onfilter: (field, value) => this.filters.toggle(field, value),
      onexplain: (row, column) => {
        // The loads that are there are those of today.
        if (this.arranged && !this.state.closed)
          void explained.show(this.state, row, column, this.facts?.currency);
      },
    });
    this.controls.element.append(this.closed.element, this.filters.details);
    this.toolbar.actions.append(this.metrics.element, this.take.element);
    const reconciled = new Reconciled(session);
    this.toolbar.actions.append(
      button(text.reconciled.label, () => reconciled.open(this.state.family, this.facts?.currency)),
    );
    if (sendsMails()) this.toolbar.actions.append(new MailMenu(session, taken).element);
    this.figures.append(this.cards.element, this.chart.element);
    this.sheet.append(
      this.toolbar.element,
      el('div', { class: 'rows' }, this.table.element),
      this.freshness.element,
    );
    this.element.append(
      this.controls.element,
      this.filters.element,
      this.unread,
      this.notice.element,
      this.figures,
      this.sheet,
      explained.element,
      adjusted.element,
      reconciled.element,
    );
    this.rows.onProgress = (progress) => void this.arriving(progress);
    this.show();
    void this.load();
  }

  /** Nothing of the report stays, and nothing is asked any more. */
  close(): void {
    this.turn++;
    this.take.close();
    this.notice.hide();
    this.rows.close();
  }

  get family(): string {
    return this.state.family;
  }

  /** @param here the step of the history stays the same, as while a word is typed */
  choose(change: Partial<State>, here = false): void {
    const state = ofShown({ ...this.state, ...change });
    const hash = toHash(state);
    const { account } = this.session;
    if (here) history.replaceState(account, '', hash);
    else if (hash !== location.hash) history.pushState(account, '', hash);
    this.tellUnread([]);
    this.go(state);
  }

  /** What the address has and the report has not. */
  tellUnread(parts: readonly string[]): void {
    this.unread.hidden = parts.length === 0;
    this.unread.textContent = text.unread(parts.join(', '));
  }

  /** Shows what is chosen now, also where the reader went back or forward to it. */
  go(state: State): void {
    const before = this.state;
    this.state = state;
    this.show();
    if (state.family !== before.family || !sameRows(before, state, this.session.today)) void this.load();
    else if (state.find !== before.find || state.sort !== before.sort) void this.arrange();
    else {
      this.draw();
      if (state.chart !== before.chart || state.changes !== before.changes) void this.drawChart();
    }
  }

  private show(): void {
    this.controls.show(this.state);
    this.closed.show(this.state);
    this.filters.show(this.state);
    this.metrics.show(this.state);
    this.toolbar.show(this.state);
    this.take.forget();
    this.cards.show(this.state, this.arranged?.totals);
    void this.filters.refresh();
  }

  private async load(): Promise<void> {
    const turn = ++this.turn;
    this.arranged = undefined;
    this.isWhole = false;
    // What it says, or asks again when its time is over, is of the question before.
    this.notice.hide();
    this.element.setAttribute('aria-busy', 'true');
    this.element.classList.add('asking');
    this.toolbar.say(text.progress.asking);
    this.cards.show(this.state, undefined);
    // For whoever looks at the page with the tools of the browser.
    performance.mark('asked');
    const answer = await this.rows.call('load', reportRequest(this.state, this.session));
    if (answer === 'superseded' || turn !== this.turn) return;
    this.element.setAttribute('aria-busy', 'false');
    this.element.classList.remove('asking');
    if ('failure' in answer) return this.fail(answer.failure);
    const { rows, facts } = answer.result;
    if (this.isOfOtherDays(facts)) return this.onNewDay();
    this.isWhole = true;
    this.facts = facts;
    this.all = rows;
    performance.mark('all rows');
    void this.closed.ask(this.state);
    await this.arrange();
  }

  /** Whether a new day has begun where days are counted, and what was asked for has other days now. */
  private isOfOtherDays({ asked }: Facts): boolean {
    const day = asked.slice(0, 10);
    const bodyOn = (today: string) => JSON.stringify(bodyOf(this.state, today));
    return day > this.session.today && bodyOn(day) !== bodyOn(this.session.today);
  }

  private async arriving({ rows, bytes, columns, facts }: Progress): Promise<void> {
    this.facts = facts;
    this.reveal(true);
    this.toolbar.say(text.progress.arriving(countText(rows), bytesText(bytes)), true);
    const first = this.element.classList.contains('asking');
    if (first) this.table.toTop();
    this.element.classList.remove('asking');
    await this.table.show(this.state, { columns, rows });
    if (first) performance.mark('first rows');
  }

  private async arrange(): Promise<void> {
    if (!this.isWhole) return;
    const turn = ++this.turn;
    this.element.setAttribute('aria-busy', 'true');
    const { sort, find } = this.state;
    const shown = columnsOf(this.state);
    const arranged = await this.rows.call('arrange', { find, shown, sort });
    if (turn !== this.turn) return;
    this.arranged = arranged;
    this.reveal(arranged.rows > 0);
    const { empty, notFound } = text.problems;
    const isFiltered = Object.keys(this.state.filters).length > 0;
    const nothing = isFiltered ? empty : { ...empty, detail: empty.unfiltered };
    if (arranged.rows === 0) this.notice.say(this.all > 0 ? notFound : nothing);
    else this.notice.hide();
    const isAll = arranged.rows === this.all;
    const count = isAll
      ? rowsText(this.all)
      : text.table.found(countText(arranged.rows), countText(this.all));
    this.toolbar.say(count);
    this.toolbar.announce(isAll ? text.progress.done(count) : count);
    this.cards.show(this.state, arranged.totals);
    this.table.toTop();
    this.draw();
    await this.drawChart();
  }

  private draw(): void {
    if (this.arranged) void this.table.show(this.state, this.arranged);
  }

  private async drawChart(): Promise<void> {
    const { state, facts, turn } = this;
    const { chart: metric, grain } = state;
    if (!this.arranged || !facts) return;
    this.element.setAttribute('aria-busy', 'true');
    const ranked = ranksChanges(state);
    const range = daysOf(state, this.session.today);
    const show = ranked ? 'changes' : grain === 'total' ? 'largest' : { range, each: grain };
    const isOver = () =>
      turn !== this.turn || metric !== this.state.chart || state.changes !== this.state.changes;
    let points: readonly ChartPoint[] = [];
    try {
      points = await this.rows.call('chart', { metric, show, most: barsShown });
      if (isOver()) return;
      this.chart.show(this.state, points, facts);
    } catch (error) {
      reportError(error);
      if (isOver()) return;
      // The rows can be read all the same.
      this.chart.clear(this.state);
    }
    const tellsEnd =
      !ranked && this.arranged?.rows === this.all && reachesNow(this.state, this.session.today);
    const until = tellsEnd ? points.findLast(({ now }) => now)?.end : undefined;
    this.freshness.show(this.state, facts, this.session.clock, until);
    this.element.setAttribute('aria-busy', 'false');
  }

  private fail(failure: Failure): void {
    if (failure.reason === 'unauthorized') {
      this.session.onEnd();
      return;
    }
    this.reveal(false);
    this.all = 0;
    this.toolbar.say('');
    this.notice.fail(failure, () => void this.load());
  }

  /** What is not the whole report, or nothing, has no table, totals or chart. */
  private reveal(there: boolean): void {
    this.figures.hidden = !there;
    this.sheet.classList.toggle('without-rows', !there);
    if (!there) this.chart.clear(this.state);
  }
}
