import type { Problem } from './problems.ts';

export interface RoomLimits {
  readonly maxBytes: number;
  /** Absent: as many as come. */
  readonly maxBodies?: number;
  /** What a body is refused with that finds no room. */
  readonly full: () => Problem;
}

/** The place of one body among those that are held. */
export interface Place {
  /** Takes so many more bytes. @throws {Problem} when there is no room for them */
  grow(bytes: number): void;
  /** Gives everything back; to be called once. */
  leave(): void;
}

/** Bodies are held in memory, so many bytes and bodies at most; of one sender half of both. */
export class Room {
  readonly #limits: RoomLimits;
  readonly #ofSender = new Map<string, { bytes: number; bodies: number }>();
  bytes = 0;
  bodies = 0;

  constructor(limits: RoomLimits) {
    this.#limits = limits;
  }

  /** @throws {Problem} when there are too many bodies */
  enter(sender: string): Place {
    const { maxBytes, maxBodies = Number.POSITIVE_INFINITY, full } = this.#limits;
    const held = this.#ofSender.get(sender) ?? { bytes: 0, bodies: 0 };
    if (this.bodies >= maxBodies || held.bodies >= maxBodies / 2) throw full();
    this.#ofSender.set(sender, held);
    this.bodies++;
    held.bodies++;
    let own = 0;
    const add = (bytes: number) => {
      own += bytes;
      this.bytes += bytes;
      held.bytes += bytes;
    };
    return {
      grow: (bytes) => {
        if (this.bytes + bytes > maxBytes || held.bytes + bytes > maxBytes / 2) throw full();
        add(bytes);
      },
      leave: () => {
        add(-own);
        this.bodies--;
        if (--held.bodies === 0) this.#ofSender.delete(sender);
      },
    };
  }
}
