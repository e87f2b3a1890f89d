import { button, el, menu } from '../parts/dom.ts';
import { failureText } from '../parts/notice.ts';
import { asked } from '../rows/asked.ts';
import type { Rows } from '../rows/client.ts';
import type { Arranged, Asked } from '../rows/protocol.ts';
import { printRows } from '../see/print.ts';
import { accountOf } from '../state/key.ts';
import { filePathOf } from '../state/request.ts';
import type { Opened } from '../state/session.ts';
import { bytesText, countText } from '../words/locale.ts';
import { text } from '../words/text.ts';
import { commands } from './commands.ts';
import { askedOf, type DownloadFormat, download, downloadFormats, type Shown } from './download.ts';

export interface Taken extends Shown {
  readonly arranged: Arranged | undefined;
  /** How many rows the report has. */
  readonly all: number;
}

/** The menu for taking the report along: files, commands, the address, paper. */
export class TakeMenu {
  readonly element: HTMLDetailsElement;
  private readonly rows: Rows;
  private readonly session: Opened;
  private readonly taken: () => Taken;
  private readonly said = el('p', { class: 'said', role: 'status' });
  private readonly shown = el('textarea', {
    readonly: true,
    hidden: true,
    rows: 6,
    'aria-label': text.take.copy,
  });
  private readonly beyondFind = el('p', { class: 'warning', hidden: true });
  private readonly ended = new AbortController();
  private running: AbortController | undefined;
  private turn = 0;

  constructor(rows: Rows, session: Opened, taken: () => Taken) {
    this.rows = rows;
    this.session = session;
    this.taken = taken;
    const formats = Object.keys(downloadFormats) as DownloadFormat[];
    // A link ends with the token that made it, and a person who signed in has none.
    const canLink = accountOf(session.key) === undefined;
    const copies = (Object.keys(text.take.copies) as (keyof typeof text.take.copies)[]).filter(
      (what) => what !== 'file' || canLink,
    );
    this.element = menu(
      text.take.label,
      el(
        'div',
        {},
        this.beyondFind,
        el('h3', {}, text.take.download),
        el(
          'div',
          { class: 'choices' },
          ...formats.map((format) => button(text.take.formats[format], () => void this.download(format))),
        ),
        el('p', { class: 'hint' }, text.take.withShown),
        el('h3', {}, text.take.copy),
        el(
          'div',
          { class: 'choices' },
          ...copies.map((what) => button(text.take.copies[what], () => void this.copy(what))),
        ),
        el('p', { class: 'hint' }, [text.take.linkHint, ...(canLink ? [text.take.fileHint] : [])].join(' ')),
        button(text.take.print, () => void this.print(), { class: 'wide' }),
        this.said,
        this.shown,
      ),
      'take',
    );
    this.element.addEventListener('toggle', () => this.compare());
    addEventListener(
      'keydown',
      (event) => {
        if (!(event.ctrlKey || event.metaKey) || event.key !== 'p') return;
        event.preventDefault();
        void this.print();
      },
      { signal: this.ended.signal },
    );
  }

  /** Find is of the page: a file, and a command, have the rows that it hides, too. */
  private compare(): void {
    const { arranged, all } = this.taken();
    const found = arranged?.rows ?? all;
    this.beyondFind.hidden = found === all;
    this.beyondFind.textContent = text.take.beyondFind(countText(found), countText(all));
  }

  private async download(format: DownloadFormat): Promise<void> {
    this.running?.abort();
    const running = new AbortController();
    this.running = running;
    const onProgress = (bytes: number) => {
      this.said.textContent = text.take.loading(bytesText(bytes));
    };
    onProgress(0);
    const result = await download(this.taken(), this.session, format, { onProgress, signal: running.signal });
    if (running.signal.aborted) return;
    if ('result' in result) this.said.textContent = text.take.done(result.result);
    else if (result.failure.reason === 'broken') this.said.textContent = text.take.failed;
    else this.said.textContent = failureText(result.failure);
  }

  private async contentOf(what: keyof typeof text.take.copies): Promise<Asked<string>> {
    if (what === 'link') return { result: location.href };
    if (what === 'file') {
      const path = `${filePathOf(this.taken().state, 'links')}.xlsx`;
      const body = { ...askedOf(this.taken(), this.session.today), totals: true };
      const answer = await asked<{ readonly link: string }>(path, this.session, body);
      return 'result' in answer ? { result: location.origin + answer.result.link } : answer;
    }
    return { result: commands[what](this.taken(), this.session.today, location.origin) };
  }

  private async copy(what: keyof typeof text.take.copies): Promise<void> {
    this.forget();
    // A screen reader says the same words again only where there were others between.
    this.said.textContent = '';
    const { turn } = this;
    const answer = await this.contentOf(what);
    if (turn !== this.turn) return;
    if ('failure' in answer) {
      this.said.textContent = failureText(answer.failure);
      return;
    }
    const content = answer.result;
    try {
      await navigator.clipboard.writeText(content);
      this.said.textContent = text.take.copied(text.take.copies[what]);
    } catch {
      // Not allowed in this frame, or over plain HTTP: the reader copies by hand.
      this.said.textContent = text.take.notCopied;
      this.shown.value = content;
      this.shown.hidden = false;
      this.shown.select();
    }
  }

  /** What was or is to be copied is of an earlier question. */
  forget(): void {
    this.turn++;
    if (!this.shown.hidden) this.said.textContent = '';
    this.shown.hidden = true;
  }

  /** Nothing goes on, and no key is listened to. */
  close(): void {
    this.ended.abort();
    this.running?.abort();
  }

  /** The browser's own way to print has only the rows in sight. */
  private async print(): Promise<void> {
    const { state, arranged } = this.taken();
    this.element.open = false;
    await printRows(this.rows, this.session, state, arranged);
  }
}
