import type { Failure } from '../rows/protocol.ts';
import { countText } from '../words/locale.ts';
import { text } from '../words/text.ts';
import { button, el } from './dom.ts';

/** Counts down in the element, then calls. Returns what stops it. */
export function countdown(into: HTMLElement, seconds: number, onend: () => void): () => void {
  const end = Date.now() + seconds * 1000;
  const tick = () => {
    const left = Math.max(0, Math.ceil((end - Date.now()) / 1000));
    into.textContent = text.problems.limited.counting(countText(left));
    if (left > 0) return;
    clearInterval(timer);
    onend();
  };
  const timer = setInterval(tick, 250);
  tick();
  return () => clearInterval(timer);
}

/** Why something was not done. */
export function failureText({ reason, detail }: Failure): string {
  if (reason === 'unauthorized') return detail ?? '';
  const { title, detail: otherwise } = text.problems[reason];
  return `${title}. ${detail || otherwise}`;
}

/** Where there are no rows to see: why, and what to do. */
export class Notice {
  readonly element = el('div', { class: 'notice', hidden: true });
  private stop = () => {};

  hide(): void {
    this.stop();
    this.element.hidden = true;
    this.element.replaceChildren();
  }

  say({ title, detail }: { readonly title: string; readonly detail: string }): void {
    this.hide();
    this.element.append(el('h2', {}, title), el('p', {}, detail));
    this.element.hidden = false;
    this.element.setAttribute('role', 'status');
  }

  /**
   * @param retry asks again; called by itself when the wait is over, or the connection is back
   * @param title of what failed; absent: of a report
   */
  fail(failure: Failure, retry: () => void, title?: string): void {
    const { reason } = failure;
    if (reason === 'unauthorized') return;
    this.say({ ...text.problems[reason], ...(title && { title }) });
    this.element.setAttribute('role', 'alert');
    if (failure.detail) this.element.append(el('p', { class: 'detail' }, failure.detail));
    if (reason === 'unreachable') this.element.append(el('p', {}, text.problems.unreachable.again));
    if (reason === 'broken' && failure.rows) {
      this.element.append(el('p', {}, text.problems.broken.rows(countText(failure.rows))));
    }
    if (reason === 'limited') {
      // Read out once, not at each second.
      const counter = el('p', { class: 'counter', 'aria-live': 'off' });
      this.element.append(counter);
      this.stop = countdown(counter, failure.retrySeconds ?? 10, retry);
    }
    this.element.append(button(text.problems.retry, retry, { class: 'primary' }));
    if (failure.requestId) {
      this.element.append(el('p', { class: 'hint' }, text.problems.request(failure.requestId)));
    }
    if (reason === 'unreachable') {
      addEventListener('online', retry, { once: true });
      this.stop = () => removeEventListener('online', retry);
    }
  }
}
