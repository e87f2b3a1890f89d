import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { type ParsedMail, simpleParser } from 'mailparser';
import { SMTPServer } from 'smtp-server';
import { afterAll, beforeAll } from 'vitest';

/** What the server does with the next mails, in turn; it takes those that come after. */
export type Answer =
  | { readonly code: number; readonly at: 'recipient' | 'end' }
  /** Goes away when it has the whole mail, without a word. */
  | 'leaves'
  /** Never answers. */
  | 'hangs';

export type TestMailServer = ReturnType<typeof useMailServer>;

const failure = (code: number) => Object.assign(new Error('not now'), { responseCode: code });

/** A mail server of one test file, on a port of its own. */
export function useMailServer() {
  /** Whole mails that came, whatever was answered. */
  const mails: ParsedMail[] = [];
  const answers: Answer[] = [];
  const sockets = new Set<Socket>();
  const server = new SMTPServer({
    disabledCommands: ['AUTH', 'STARTTLS'],
    onRcptTo: (_, __, callback) => {
      const [next] = answers;
      if (typeof next !== 'object' || next.at !== 'recipient') return callback();
      answers.shift();
      callback(failure(next.code));
    },
    onData: (stream, _, callback) => {
      const next = answers.shift();
      void simpleParser(stream).then((mail) => {
        // One that broke off is no mail.
        if (!stream.readableEnded) return;
        mails.push(mail);
        if (next === 'leaves') for (const socket of sockets) socket.destroy();
        else if (typeof next === 'object') callback(failure(next.code));
        else if (next === undefined) callback();
      }, callback);
    },
  });
  server.on('error', () => {});
  beforeAll(async () => {
    server.server.on('connection', (socket: Socket) => {
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
    });
    server.listen(0, '127.0.0.1');
    await once(server.server, 'listening');
  });
  afterAll(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    get url() {
      return `smtp://127.0.0.1:${(server.server.address() as AddressInfo).port}`;
    },
    mails,
    answer: (...next: Answer[]) => void answers.push(...next),
  };
}
