/** Events of days that are hardly right. */
export interface OddDays {
  /** More than a day ahead. */
  readonly future: number;
  /** Before 2000. */
  readonly early: number;
}

/** SQL of their conditions. */
export const inFuture = "day > toDate(now(), 'UTC') + 1";
export const isEarly = "day < toDate('2000-01-01')";

/** SQL: an event has another time than midnight. */
export const hasTime = "formatDateTime(event_time, '%T', {timezone:String}) != '00:00:00'";
