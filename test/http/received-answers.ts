/** An answer as it came over a bare connection. */
export interface ReceivedAnswer {
  readonly status: number;
  readonly headers: string;
  readonly body: string;
  /** Whether all of the body is there that the headers or the chunks promise. */
  readonly whole: boolean;
}

/** All final answers in what a connection gave, which is text of single bytes; status 0: what is no answer. */
export function receivedAnswers(given: string): ReceivedAnswer[] {
  const answers: ReceivedAnswer[] = [];
  let rest = given;
  while (rest) {
    const status = Number(/^HTTP\/1\.1 (\d{3})[^\r\n]*\r\n/.exec(rest)?.[1] ?? 0);
    const end = rest.indexOf('\r\n\r\n');
    if (status === 0 || end < 0) return [...answers, { status: 0, headers: rest, body: '', whole: false }];
    const headers = rest.slice(0, end);
    rest = rest.slice(end + 4);
    if (status < 200) continue;
    const { body, whole, length } = bodyOf(headers, rest);
    rest = rest.slice(length);
    answers.push({ status, headers, body, whole });
  }
  return answers;
}

export function headerOf({ headers }: ReceivedAnswer, name: string): string | undefined {
  return new RegExp(`^${name}: (.*)$`, 'im').exec(headers.replaceAll('\r', ''))?.[1];
}

function bodyOf(headers: string, rest: string): { body: string; whole: boolean; length: number } {
  // An answer to HEAD tells a length and has no content.
  if (rest.startsWith('HTTP/1.1 ')) return { body: '', whole: true, length: 0 };
  if (/^transfer-encoding: chunked\r?$/im.test(headers)) return unchunked(rest);
  const length = Number(/^content-length: (\d+)\r?$/im.exec(headers)?.[1] ?? Number.NaN);
  const body = Number.isNaN(length) ? rest : rest.slice(0, length);
  return { body, whole: body.length === length, length: body.length };
}

function unchunked(rest: string): { body: string; whole: boolean; length: number } {
  let body = '';
  let at = 0;
  for (;;) {
    const size = /^([\da-f]+)\r\n/i.exec(rest.slice(at, at + 20));
    if (!size) return { body, whole: false, length: rest.length };
    const from = at + size[0].length;
    const bytes = Number.parseInt(size[1] ?? '', 16);
    body += rest.slice(from, from + bytes);
    at = from + bytes + 2;
    if (rest.slice(at - 2, at) !== '\r\n') return { body, whole: false, length: rest.length };
    if (bytes === 0) return { body, whole: true, length: at };
  }
}
