import type {
  BreakdownId,
  DimensionColumnId,
  FamilyId,
  MetricId,
  RatioId,
} from '../../../catalog/catalog.ts';
import type { Status } from '../../reconcile/model/about.ts';
import type { PeriodBefore } from '../../report/days.ts';

/** Columns that every report has, and ids behind names. */
type Own = 'start_time' | 'first_day' | 'end_time' | 'campaign_id' | 'ad_unit_id' | 'site_id';
type Column = MetricId | DimensionColumnId | Own;

/** A name that turns the direction of writing turns nothing beside it. */
export const name = (text: string) => `\u2068${text}\u2069`;

/** A word for each of these. */
const each = <Id extends string>(words: Record<Id, string>) => words;
/** As many heads in each language. */
const heads = <Labels extends unknown[]>(...labels: Labels) => labels;

/** Every text of the page, in English. */
export const en = {
  title: 'Reports',
  documentTitle: (brand: string) => `${brand}: reports`,
  skip: 'Skip to the report',
  signIn: {
    heading: 'Sign in',
    lead: 'See every row of your reports: exact, and with the days marked whose money may still change.',
    label: 'Login token',
    hint: 'It begins with adt_. The operator of this service gives it to you.',
    submit: 'Sign in',
    at: (provider: string) => `Sign in with ${provider}`,
    working: 'Signing in …',
    kept: 'The token stays in this tab and is forgotten when you close it.',
    reasons: {
      ended: 'You have been signed out: the token has expired or was revoked.',
      session: 'Your session has ended. Sign in again: what you chose is kept.',
      wrong: 'This token opens nothing: it is mistyped, has expired or was revoked.',
      out: 'You are signed out.',
      here: 'You are signed out here, but not where you signed in: on a machine of others, sign out there, too.',
      everywhere: 'You are signed out in every browser. Tokens of programs go on.',
      notOut: 'You could not be signed out: try again, or tell the operator of this service.',
    },
    /** What became of an attempt to sign in. */
    failures: {
      away: 'The page where you sign in does not answer. Try again in a moment.',
      refused: 'You were not signed in, because you or the page where you sign in refused.',
      other_tab:
        'This attempt to sign in is over: it took too long, or another tab began a later one. Try again.',
      clock:
        'You were not signed in: the clocks of this service and of the page where you sign in differ. Tell the operator.',
      no_accounts: 'You are known, but no account is open to you here. Ask the operator for one.',
      too_many_accounts: 'You are known, but for too many accounts at once. Tell the operator.',
      failed: 'You were not signed in. If it stays so, tell the operator when it happened.',
    },
    unknown: 'The service cannot say who is signed in',
    orToken: 'Or with a token',
    choose: {
      title: 'Choose an account',
      detail: 'You may see more than one. At the top of the report you change to another.',
    },
    other: {
      title: 'This link opens another account',
      detail: (now: string, other: string) =>
        `You are signed in to ${name(now)}. The link signs you in to ${name(other)} instead.`,
      stay: (now: string) => `Stay with ${name(now)}`,
      change: (other: string) => `Open ${name(other)}`,
    },
  },
  signOut: 'Sign out',
  signOuts: { here: 'In this browser', everywhere: 'Everywhere' },
  account: 'Account',
  documentation: 'Documentation',
  language: { label: 'Language', auto: 'Language of the browser' },
  theme: {
    label: 'Colours',
    auto: 'System colours',
    light: 'Light',
    dark: 'Dark',
  },
  families: each<FamilyId>({ campaigns: 'Campaigns', ad_units: 'Ad units' }),
  familiesLabel: 'Report',
  unread: (parts: string) =>
    `This page does not know these parts of the address, and shows the report without them: ${name(parts)}`,
  choose: 'Choose what to see',
  by: 'Group by',
  dimensions: each<BreakdownId>({ device: 'Device', creative: 'Creative', site: 'Site' }),
  each: 'For each',
  grains: { total: 'Total', day: 'Day', week: 'Week', month: 'Month' },
  range: {
    label: 'Days',
    presets: {
      yesterday: 'Yesterday',
      last_7_days: 'Last 7 days',
      last_28_days: 'Last 28 days',
      last_90_days: 'Last 90 days',
      this_month: 'This month',
      last_month: 'Last month',
      this_quarter: 'This quarter',
      last_365_days: 'Last 365 days',
    },
    first: 'First day',
    last: 'Last day',
    apply: 'Show these days',
    inverted: 'The first day is after the last.',
  },
  compare: {
    label: 'Compare with',
    names: each<PeriodBefore | 'none' | 'own'>({
      none: 'Nothing',
      previous_period: 'Previous period',
      previous_weeks: 'Same weekdays before',
      previous_month: 'Month before',
      previous_year: 'Previous year',
      own: 'Other days …',
    }),
    first: 'Compared from',
    last: 'Compared to',
    with: (days: string) => `compared with ${days}`,
  },
  closed: {
    label: 'Figures',
    names: { today: 'As of today', closed: 'As closed' },
    at: (when: string) => `closed ${when}`,
    changes: 'What changed since',
    title: 'What changed after the month was closed',
    nothing: 'Nothing changed.',
    columns: { changed_at: 'When', change: 'What', load: 'Load', reason: 'Reason' },
    kinds: {
      loaded: 'Loaded',
      taken_back: 'Taken back',
      replaced: 'Replaced',
      by_hand: 'Added by hand',
      unknown: 'Not known',
    },
  },
  columns: each<Column>({
    start_time: 'Day',
    first_day: 'From',
    end_time: 'To',
    campaign: 'Campaign',
    campaign_id: 'Campaign id',
    ad_unit: 'Ad unit',
    ad_unit_id: 'Ad unit id',
    device: 'Device',
    creative_headline: 'Creative',
    creative_id: 'Creative id',
    site: 'Site',
    site_id: 'Site id',
    impressions: 'Impressions',
    conversions: 'Conversions',
    referrals: 'Referrals',
    spent: 'Spent',
    cpa: 'CPA',
    cpc: 'CPC',
    cpm: 'CPM',
    estimated_revenue: 'Revenue',
    ad_requests: 'Requests',
    fill_rate: 'Fill rate',
    rtr: 'Referral rate',
  }),
  meanings: each<RatioId>({
    cpa: 'Spent for each conversion',
    cpc: 'Spent for each referral',
    cpm: 'For a thousand impressions',
    fill_rate: 'Impressions of the requests',
    rtr: 'Referrals of the impressions',
  }),
  compared: (column: string) => `${column} before`,
  change: (column: string) => `${column} change`,
  opened: 'Parts of what is chosen',
  parts: each<BreakdownId>({ device: 'Devices', creative: 'Creatives', site: 'Sites' }),
  filters: {
    label: 'Filter',
    add: 'Add a filter',
    field: 'Field',
    find: 'Find a value',
    values: 'Values of these days',
    none: 'No such value on these days.',
    more: (shown: number) => `The first ${shown} are listed; type to find others.`,
    remove: (field: string, value: string) => `Take off the filter ${field}: ${value}`,
    empty: '(empty)',
    clear: 'Take all off',
    hint: 'A click on a text of the table filters, too; one on a figure shows where it comes from.',
  },
  metrics: {
    label: 'Columns',
    show: (column: string) => `Show ${column}`,
    earlier: (column: string) => `Move ${column} to the left`,
    later: (column: string) => `Move ${column} to the right`,
    widths: 'Reset widths',
  },
  totals: 'Totals',
  unchanged: 'no change',
  chart: {
    overTime: (metric: string, each: string) => `${metric} by ${each.toLowerCase()}`,
    largest: (metric: string) => `Largest by ${metric}`,
    changed: (metric: string) => `What changed most: ${metric}`,
    changes: 'What changed most',
    now: 'These days',
    before: 'Compared',
    part: { day: 'part of a day', week: 'part of a week', month: 'part of a month' },
    asTable: 'The chart as a table',
    unconfirmed: 'money may still change',
    noFigures: 'No figures',
    when: 'When',
    what: 'Of what',
  },
  table: {
    label: 'Rows of the report',
    total: 'Total',
    rows: (count: string) => `${count} rows`,
    oneRow: '1 row',
    found: (count: string, all: string) => `${count} of ${all} rows`,
    find: 'Find in the rows',
    findHint: 'Find …',
    unconfirmed: 'The money of this row may still change',
    keys: 'Arrow keys, Page Up, Page Down, Home and End go from cell to cell; Enter does what a click does.',
    printed: (count: string, all: string) =>
      `The first ${count} of ${all} rows; download the report for all of them.`,
  },
  explained: {
    title: 'Where does this come from?',
    close: 'Close',
    columns: heads('Part', 'Load', 'Reason', 'Loaded', 'Days', 'Events'),
    money: 'Money',
    kinds: {
      events: 'File',
      replay: 'Corrections',
      pruned: 'Older, events no longer kept',
      by_hand: 'Added by hand',
      more: 'All later ones',
    },
    corrects: (load: string) => `of ${load}`,
    confirmed: (when: string) => `final since ${when}`,
    unconfirmed: 'may still change',
  },
  reconciled: {
    label: 'Compare with a file …',
    title: 'Comparison with a file',
    hint: "A report of the other side: CSV, TSV, JSON, Parquet or Avro, with a day, a campaign or ad unit (by id or name) and figures in each record. It is compared day by day with all of this account's figures as of today; filters and chosen days do not matter. It is not kept.",
    file: 'Their report',
    tolerance: 'Tolerance',
    compare: 'Compare',
    comparing: 'Comparing …',
    otherFile:
      'Choose a file that ends in .csv, .tsv, .json, .ndjson, .parquet or .avro. A sheet of Excel can be saved as "CSV UTF-8".',
    changed: 'The file has changed since it was chosen: choose it again.',
    tooLarge: (limit: string) => `The file is larger than ${limit}: choose a smaller one.`,
    days: (file: string, days: string) => `${name(file)}, ${days}`,
    totals: 'Totals',
    ours: 'Ours',
    theirs: 'Theirs',
    difference: 'Difference',
    unexplained: 'Unexplained',
    causesTitle: 'What explains the difference',
    equal: 'Both sides are equal.',
    noCause: 'Nothing that was tried fits. Unexplained: ',
    left: 'Unexplained: ',
    allExplained: 'Nothing is left unexplained.',
    untried:
      'Time zones, loads, late conversions and corrections were not tried: the events of these days are no longer kept.',
    unreadable: (count: string) =>
      `Records of the file that cannot be read, and are compared with nothing: ${count}`,
    causes: {
      time_zone: (theirs: string, ours: string, others: string) =>
        `Their days are those of ${theirs}, ours of ${ours}.${others && ` These would fit as well: ${others}.`}`,
      missing_day: {
        theirs: (days: string) => `Their report has nothing of ${days}.`,
        ours: (days: string) => `Ours has nothing of ${days}.`,
      },
      doubled_day: (days: string) => `Their report counts twice: ${days}.`,
      other_name: (pairs: string) => `Their report uses other names: ${pairs}.`,
      corrections: (moment: string) => `Their report lacks what was loaded here after ${moment}.`,
      late_conversions: (moment: string) =>
        `Their report lacks conversions that were loaded here after ${moment}.`,
      missing_load: (loads: string) => `Their report lacks what this load brought here: ${loads}.`,
      doubled_load: (loads: string) => `Their report counts twice what this load brought here: ${loads}.`,
      rounding: (figures: string) => `Their report rounds: ${figures}.`,
    },
    pair: (theirs: string, ours: string) => `${name(theirs)} is ${name(ours)} here`,
    listed: (loads: string) => `Loads: ${loads}.`,
    others: (count: string) => `${count} more`,
    rowsTitle: 'Rows that differ',
    state: 'Status',
    status: each<Status>({
      equal: 'equal',
      within: 'within the tolerance',
      differs: 'different',
      only_ours: 'only ours',
      only_theirs: 'only theirs',
    }),
    more: (count: string) => `Rows that follow and are not shown: ${count}.`,
  },
  progress: {
    asking: 'Asking …',
    arriving: (rows: string, size: string) => `${rows} rows, ${size}; more are arriving`,
    done: (rows: string) => `The report is complete: ${rows}.`,
  },
  fresh: {
    until: (day: string) => `Data until ${day}`,
    loaded: (when: string) => `loaded ${when}`,
    unconfirmed: (days: string) => `Money not final: ${days}`,
    asked: (when: string) => `asked ${when}`,
  },
  take: {
    label: 'Export',
    download: 'Download',
    formats: { csv: 'CSV', xlsx: 'Excel', parquet: 'Parquet', ndjson: 'NDJSON' },
    withShown: 'The chosen columns and filters, every row; for Excel with the totals as the last one.',
    beyondFind: (found: string, all: string) =>
      `These hold all ${all} rows, not only the ${found} that Find shows. A filter narrows them, too.`,
    copy: 'Copy',
    copies: {
      link: 'Link to this page',
      file: 'Link to the file',
      curl: 'curl',
      python: 'Python',
      duckdb: 'SQL for DuckDB',
    },
    linkHint: 'The link has no token: who opens it signs in.',
    fileHint: 'The link to the Excel file opens it for a week, for whoever has it, without signing in.',
    print: 'Print',
    copied: (what: string) => `Copied: ${what}`,
    notCopied: 'The browser does not let this page copy. Here it is:',
    loading: (size: string) => `Downloading, ${size} so far …`,
    done: (name: string) => `Downloaded ${name}`,
    failed: 'The download broke off. Nothing was saved; try again.',
  },
  byMail: {
    label: 'Mail this report …',
    to: 'Recipients, with commas',
    every: 'How often',
    frequencies: { day: 'Every day', week: 'On Mondays', month: 'On the first of a month' },
    days: 'Of which days',
    periods: {
      yesterday: 'Yesterday',
      last_week: 'Last week',
      last_month: 'Last month',
      month_to_date: 'This month until the day before',
    },
    at: 'At, where the days are counted',
    file: 'All rows as',
    hint: 'With the chosen columns, filters, order and language. The figures are those of the day of sending. Comparisons with other days are left out, and what Find hides is in it. Each recipient is asked once by mail whether they want it.',
    create: 'Send by mail',
    created: 'It is sent to those who agree: each recipient has to click in a mail that comes first.',
    list: 'Reports that this account sends',
    none: 'None yet.',
    notAgreed: 'has not agreed yet',
    left: 'wants no more mails',
    sent: (when: string) => `last sent ${when}`,
    notSent: 'the last one was not sent; ask the operator',
    unknown: 'nobody knows whether the last one was sent; ask the operator',
    waiting: 'is sent when it is due',
    states: { paused: 'Paused', ended: 'Ended: its token was revoked' },
    turns: { pause: 'Pause', resume: 'Resume', remove: 'Remove' },
    turned: { pause: 'Paused.', resume: 'It is sent again from now on.', remove: 'Removed.' },
  },
  problems: {
    empty: {
      title: 'No rows',
      detail:
        'Nothing was counted on these days with these filters. Choose other days, or take a filter off.',
      unfiltered: 'Nothing was counted on these days. Choose other days.',
    },
    notFound: { title: 'No row has this', detail: 'Search for something else.' },
    limited: {
      title: 'Too many requests',
      detail: 'In a moment the service will take more.',
      counting: (seconds: string) => `Trying again in ${seconds} s`,
    },
    refused: { title: 'The service did not accept this', detail: 'Choose something else.' },
    failed: {
      title: 'The report failed',
      detail: 'Try again; if it stays, tell the operator the number of the request.',
    },
    broken: {
      title: 'The transfer broke off',
      detail: 'What had come is not the whole report, so it is not shown. Try again.',
      rows: (rows: string) => `${rows} rows had come.`,
    },
    other: {
      title: 'Something else than the service answered',
      detail: 'Reload the page: a network may want you to sign in.',
    },
    unreachable: {
      title: 'The service cannot be reached',
      detail: 'Check your connection.',
      again: 'The page tries again by itself when you are online.',
    },
    retry: 'Try again',
    request: (id: string) => `Request ${id}`,
  },
};

/** Another language has each of these texts. */
export type Words = typeof en;

/** Every text of mails, and of the pages that their links open. The page does not carry them. */
export const mails = {
  subject: (report: string, days: string, isFinal: boolean) =>
    `${report}, ${days}${isFinal ? '' : ' (provisional)'}`,
  /** @param parts names of dimensions, and of the day */
  report: (family: string, parts: readonly string[]) =>
    parts.length === 0
      ? family
      : `${family} by ${new Intl.ListFormat('en-GB').format(parts.map((part) => part.toLowerCase()))}`,
  account: (account: string) => `Account: ${name(account)}`,
  compared: (days: string) => `Compared with ${days}.`,
  final: 'All days are confirmed: these figures are final.',
  unconfirmed: (days: string) => `Provisional: money may still change on ${days}.`,
  noRowsSince: (day: string) => `Provisional: there are no figures after ${day} yet.`,
  noRowsYet: 'Provisional: there are no figures of these days yet.',
  late: (due: string, sent: string, timezone: string) =>
    `This mail comes late: it was due on ${due} and was sent on ${sent} (${timezone}).`,
  totals: 'Totals',
  largest: (by: string, rows: string, count: string) => `The ${rows} largest of ${count} rows, by ${by}`,
  first: (rows: string, count: string) => `The first ${rows} of ${count} rows`,
  rows: 'Rows',
  none: 'There are no rows.',
  attached: (file: string) => `All rows are in the file ${file}.`,
  linked: (count: string) =>
    `The file has ${count} rows and is too large for a mail. Download it here, for a week:`,
  download: 'Download all rows',
  unsubscribe: 'No more of these mails',
  page: {
    title: 'Reports by mail',
    ask: (recipient: string) => `Do you want no more of these mails to ${recipient}?`,
    button: 'Send no more',
    done: (recipient: string) => `${recipient} gets no more of these mails.`,
    unknown: 'This link is not whole. Copy all of it from the mail.',
  },
  /** Of the reports that an account sends by itself: a no is for all of them. */
  ofAccount: {
    unsubscribe: 'No more reports from this account',
    ask: (account: string, recipient: string) =>
      `Do you want no more of the reports that the account ${name(account)} sends to ${recipient}?`,
    done: (account: string, recipient: string) =>
      `${recipient} gets no more of the reports that the account ${name(account)} sends.`,
  },
  /** Before the first mail to somebody whose address an account has given. */
  question: {
    subject: 'Do you want reports by mail?',
    text: (account: string, recipient: string) =>
      `The account ${name(account)} wants to send its reports by mail to ${recipient}. They come only if you agree. If you do nothing, no other mail comes.`,
    button: 'Yes, send me these reports',
    refuse: 'No, and do not ask again',
    ask: (recipient: string) => `Shall reports be sent to ${recipient}?`,
    done: (recipient: string) => `${recipient} gets the reports that are due from now on.`,
  },
};

/** Another language has each of these texts. */
export type MailWords = typeof mails;
