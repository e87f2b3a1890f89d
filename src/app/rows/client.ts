import { locale } from '../words/locale.ts';
import type { Message, Methods, Progress } from './protocol.ts';

/** The text of the worker's script, which the build puts here. */
declare const WORKER_SCRIPT: string;

/** The worker, seen from the page. */
export class Rows {
  onProgress: (progress: Progress) => void = () => {};
  private readonly worker: Worker;
  private readonly waiting = new Map<
    number,
    { resolve: (result: never) => void; reject: (error: Error) => void }
  >();
  private calls = 0;
  /** The last call of `load`: what an earlier one says of its progress may still come. */
  private loading = 0;

  constructor() {
    // Part of this page, so that page and worker are of one version whatever answers the next request.
    const url = URL.createObjectURL(new Blob([WORKER_SCRIPT], { type: 'text/javascript' }));
    this.worker = new Worker(url, { name: locale });
    this.worker.addEventListener('message', ({ data }: MessageEvent<Message>) => this.take(data));
  }

  call<M extends keyof Methods>(
    method: M,
    argument: Parameters<Methods[M]>[0],
  ): Promise<ReturnType<Methods[M]>> {
    const id = ++this.calls;
    if (method === 'load') this.loading = id;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ id, method, argument });
    });
  }

  /** Ends the worker, and with it all rows. */
  close(): void {
    this.worker.terminate();
  }

  private take(message: Message): void {
    if ('progress' in message) {
      if (message.id === this.loading) this.onProgress(message.progress);
      return;
    }
    const caller = this.waiting.get(message.id);
    this.waiting.delete(message.id);
    if ('error' in message) caller?.reject(new Error(message.error));
    else caller?.resolve(message.result as never);
  }
}
