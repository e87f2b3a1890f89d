import type * as z from 'zod';
import type { Store } from '../../clickhouse/client.ts';
import { listTokens } from '../accounts/tokens.ts';
import { InvalidRequest } from '../report/invalid-request.ts';
import { type newSchedule, scheduleOf } from './new-schedule.ts';
import { isSame, listSchedules, type Schedule, type StoredSchedule, storeSchedule } from './schedules.ts';
import { ownListed, tellSchedules } from './told.ts';
import { turned, type turnedTo } from './turned.ts';

/** Who asks for schedules of their own account. */
export interface Owner {
  readonly account: string;
  /** The only family that is open to them; null: all of the account. */
  readonly family: string | null;
  /** The id of the login token; absent: a person signed in. */
  readonly token?: string | undefined;
  /** As the provider calls the person. */
  readonly person?: string | undefined;
}

/** Works with a client that may write `schedules`. */
type WithWriter = <T>(work: (writer: Store) => Promise<T>) => Promise<T>;

/** Of one account, those that it made. */
const mostSchedules = 20;
const mostRecipients = 50;

/** The schedules that accounts make for themselves. Nobody sees or touches those of another account, or of the operator. */
export class OwnSchedules {
  readonly #store: Store;
  readonly #withWriter: WithWriter;
  readonly #timezone: () => string;
  /** Of changes, which come one after the other, so that they see each other. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(store: Store, withWriter: WithWriter, timezone: () => string) {
    this.#store = store;
    this.#withWriter = withWriter;
    this.#timezone = timezone;
  }

  async list(owner: Owner): Promise<z.infer<typeof ownListed>[]> {
    const own = await tellSchedules(this.#store, this.#timezone(), owner.account, isOf(owner));
    return own.map((schedule) => ownListed.parse(schedule));
  }

  /**
   * Makes one, unless it is there: whoever got no answer asks again.
   * @throws {InvalidRequest} where the account has enough, or its login does not open the report
   */
  create(owner: Owner, given: z.output<typeof newSchedule>): Promise<{ id: string }> {
    const { account, family, token, person } = owner;
    if (family !== null && given.report.split('/')[0] !== family)
      throw new InvalidRequest('report', 'is not open to this login');
    const madeBy = token ? `token ${token}` : `person ${person}`;
    const made = scheduleOf(given, { account, madeBy });
    return this.#change(async (write) => {
      const schedule = { ...made, token: await this.#lasting(owner) };
      const listOwn = async () =>
        (await listSchedules(this.#store, account)).filter(isOf({ account, family: null }));
      const own = await listOwn();
      if (!own.some(isSame(made))) {
        if (own.length >= mostSchedules)
          throw new InvalidRequest(
            undefined,
            `an account has ${mostSchedules} schedules at most; remove one`,
          );
        if (new Set([...own, schedule].flatMap(({ to }) => to)).size > mostRecipients)
          throw new InvalidRequest('to', `makes more than ${mostRecipients} recipients of this account`);
        await write(schedule);
      }
      // Another process may have made one at the same moment: whichever looks last sees both. The other may have answered with the
      // id of the one that is removed.
      const [first = schedule, ...more] = (await listOwn()).filter(isSame(made));
      for (const each of more) await write({ ...each, state: 'removed' });
      return { id: first.id };
    });
  }

  /** The token, unless it ends by itself: people are signed in by such ones for some hours, and their schedules go on. */
  async #lasting({ account, token }: Owner): Promise<string> {
    const [found] = token === undefined ? [] : await listTokens(this.#store, { account, id: token });
    return found?.expires === null ? found.id : '';
  }

  /** @throws {InvalidRequest} where the owner has no such schedule */
  turn(
    owner: Owner,
    id: string,
    state: z.infer<typeof turnedTo>['state'],
  ): Promise<z.infer<typeof turnedTo>> {
    return this.#change(async (write) => {
      const schedule = (await listSchedules(this.#store, owner.account))
        .filter(isOf(owner))
        .find((each) => each.id === id);
      if (!schedule) throw new InvalidRequest('schedule', 'is not in the list of schedules');
      await write(turned(schedule, state));
      return { schedule: id, state };
    });
  }

  #change<T>(work: (write: (schedule: StoredSchedule) => Promise<void>) => Promise<T>): Promise<T> {
    const turn = this.#last.then(() =>
      this.#withWriter((writer) => work((schedule) => storeSchedule(writer, schedule, this.#store))),
    );
    this.#last = turn.catch(() => {});
    return turn;
  }
}

/** Whether a schedule is the owner's own. */
function isOf({ account, family }: Pick<Owner, 'account' | 'family'>) {
  return (schedule: Schedule) =>
    schedule.account === account &&
    schedule.madeBy !== '' &&
    (family === null || schedule.report.split('/')[0] === family);
}
