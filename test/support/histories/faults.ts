import { setTimeout as delay } from 'node:timers/promises';
import { send } from '../killable-store.ts';
import type { Dice } from '../round-files.ts';
import type { Session } from './session.ts';

const faults = [
  'kill a command',
  'kill a command',
  'stop a command',
  'kill the service',
  'stop the service',
  'kill the engine',
  'stop the engine',
] as const;

/** One fault of chance, and what it was; comes back when it is over. */
export async function disturb(session: Session, dice: Dice, longestStopMs: number): Promise<string> {
  const fault = dice.one(faults);
  const [verb, , whom] = fault.split(' ');
  const command = session.anyCommand((limit) => dice.below(limit));
  const victim = whom === 'command' ? command : whom === 'service' ? session.service : session.engine();
  const signal = dice.one(['SIGKILL', 'SIGKILL', 'SIGTERM', 'SIGINT'] as const);
  // Mostly short.
  const ms = 1_000 + dice.below(dice.one([1_000, 4_000, longestStopMs - 1_000]));
  if (!victim) return `nothing to ${fault}`;
  if (verb === 'kill') {
    send(victim, whom === 'engine' ? 'SIGKILL' : signal);
    return fault;
  }
  send(victim, 'SIGSTOP');
  await delay(ms);
  send(victim, 'SIGCONT');
  return `${fault} for ${Math.round(ms / 1000)} s`;
}

/** Some connections to ClickHouse break off, at once or after a silence. */
export function breakConnections(session: Session, dice: Dice): void {
  session.proxy.fate = () =>
    dice.below(8) > 0
      ? undefined
      : { afterBytes: dice.below(dice.one([400, 1_200, 6_000])), silentMs: dice.one([0, 0, 500, 5_000]) };
}
