/** What explanations say. */
export const causes = {
  time_zone: 'their days are those of another time zone',
  missing_day: 'one side has nothing of a day',
  doubled_day: 'their report has a day twice',
  other_name: 'a campaign or ad unit is called otherwise in their report',
  missing_load: 'their report lacks a load of ours',
  doubled_load: 'their report has a load of ours twice',
  corrections: 'their report lacks what was loaded after a moment',
  late_conversions: 'their report lacks conversions that were loaded after a moment',
  rounding: 'their report rounds figures',
} as const;
export type CauseName = keyof typeof causes;

/** What an explanation is about, for those who say it in words of their own; what it is not about is absent. */
export interface About {
  /** The time zone of their days, and others that would fit as well. */
  readonly zone?: string;
  readonly other_zones?: readonly string[];
  /** The time zone of our days. */
  readonly our_zone?: string;
  /** Days that their report lacks, or has twice. */
  readonly days?: readonly string[];
  /** Days that only their report has. */
  readonly their_days?: readonly string[];
  readonly names?: readonly { readonly theirs: string; readonly ours: string }[];
  readonly loads?: readonly string[];
  /** A moment in UTC: what was loaded after it is not in their report. */
  readonly loaded_after?: string;
  readonly figures?: readonly string[];
}

/** What a row by day and key can be. */
export const statuses = ['equal', 'within', 'differs', 'only_ours', 'only_theirs'] as const;
export type Status = (typeof statuses)[number];
