import type { Socket } from 'node:net';

const maxChars = 16 * 1024;

/**
 * The next line that arrives on a connection, without its end. Undefined when none came within `limitMs`, when it is
 * longer than 16 KiB, or when the other side has ended. What follows the line at once is dropped: here each side
 * waits for the other's line.
 */
export function nextLine(socket: Socket, limitMs: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    let text = '';
    const timer = setTimeout(() => settle(undefined), limitMs);
    const settle = (line: string | undefined): void => {
      clearTimeout(timer);
      socket.off('data', onData).off('end', onEnd).off('close', onEnd);
      resolve(line);
    };
    const onEnd = (): void => settle(undefined);
    const onData = (chunk: Buffer): void => {
      text += chunk.toString();
      const [line, rest] = text.split('\n', 2);
      if (rest !== undefined) settle(line);
      else if (text.length > maxChars) settle(undefined);
    };
    socket.on('data', onData).on('end', onEnd).on('close', onEnd);
  });
}
