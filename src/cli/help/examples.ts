import type { Command } from 'commander';

/** Of each command, named by its words: command lines, each with what it is for. */
export const examples: Readonly<Record<string, readonly (readonly [line: string, purpose: string])[]>> = {
  serve: [
    ['adtally serve', 'on the embedded ClickHouse, whose data is in .data'],
    ['PORT=9000 DATA_DIR=/var/lib/adtally adtally serve', 'on another port and folder'],
    ['CLICKHOUSE_URL=http://clickhouse:8123 adtally serve', 'on a ClickHouse server, after adtally migrate'],
  ],
  receive: [
    [
      'adtally receive',
      'POST /v1/events on port 8081, with a token of adtally token create --for ingest NAME',
    ],
    ['RECEIVE_PORT=9001 MAPPINGS_DIR=mappings adtally receive', 'bodies may name mappings/NAME.json'],
  ],
  demo: [['adtally demo', 'a service with half a million events, and curl commands to paste']],
  clickhouse: [['adtally clickhouse', 'keeps the embedded ClickHouse up, and says how to look at it']],
  ingest: [
    ['adtally ingest events events.ndjson.gz', 'one file; again it changes nothing'],
    ['adtally ingest events inbox --dry-run', 'all files of a folder, only checked'],
    ['adtally ingest campaigns campaigns.csv', 'names, which reports show instead of ids'],
    ['adtally ingest confirmations confirmed.csv', 'days whose money is final'],
  ],
  'ingest events': [
    ['adtally ingest events events.ndjson.gz', 'one file; again it changes nothing'],
    ["adtally ingest events 'inbox/*.csv' --max-rejects 0.5%", 'many files, few bad rows'],
    ['adtally ingest events inbox --move-to done', 'a folder; files that are loaded leave it'],
    ["adtally ingest events 's3://bucket/logs/*.parquet'", 'objects; with the keys that AWS tools find'],
    [
      "adtally ingest events 's3://bucket/{yyyy}/{MM}/{dd}/*.gz' --since 2d --follow 60s",
      'what is new there, as it comes',
    ],
    [
      'adtally ingest events google.csv --mapping google-ads.json --dry-run',
      'an export of others, only checked',
    ],
    ['adtally ingest events --suggest export.csv > mapping.json', 'a mapping for an export'],
    ['adtally ingest events new.csv --replaces LOAD --max-change 20%', 'in the place of a wrong load'],
    ['zstdcat events.csv.zst | adtally ingest events --format csv -', 'from standard input'],
  ],
  'ingest campaigns': [
    ['adtally ingest campaigns campaigns.csv', 'account_id,campaign_id,name'],
    ["adtally ingest campaigns 's3://bucket/campaigns-*.csv' --follow 5m", 'each new list, as it comes'],
  ],
  'ingest creatives': [['adtally ingest creatives creatives.csv', 'account_id,creative_id,headline']],
  'ingest ad_units': [['adtally ingest ad_units ad_units.csv', 'account_id,ad_unit_id,name']],
  'ingest sites': [['adtally ingest sites sites.csv', 'account_id,site_id,name']],
  'ingest confirmations': [['adtally ingest confirmations confirmed.csv', 'account_id,day']],
  confirm: [['adtally confirm acme --from 2026-10-01 --to 2026-10-31', 'the money of October is final']],
  loads: [
    ['adtally loads --limit 5', 'the last five'],
    ['adtally loads show LOAD', 'one load, its days and what is open'],
  ],
  'loads show': [['adtally loads show LOAD --json', 'one load, its days and what is open']],
  rejects: [
    ['adtally rejects LOAD --csv > rejected.csv', 'to correct and replay'],
    ['adtally rejects LOAD --dismiss', 'nobody will correct them'],
  ],
  replay: [['adtally replay LOAD rejected.csv', 'loads each corrected row once']],
  explain: [
    [
      'adtally explain acme campaign_id=autumn device=mobile --from 2026-10-31 --to 2026-10-31',
      'the files and lines behind a row',
    ],
    [
      'adtally explain acme campaign_id=autumn --from 2026-10-31 --to 2026-10-31 --mapping google-ads.json --moved-to done',
      'of files that were loaded through a mapping, and then moved',
    ],
    [
      'adtally explain news ad_unit_id=top --from 2026-10-01 --to 2026-10-31 --json',
      'of a publisher, a whole month',
    ],
  ],
  reconcile: [
    [
      'adtally reconcile theirs.csv --account acme --mapping google-ads.json',
      'where both differ, and what explains it',
    ],
    [
      'adtally reconcile theirs.csv --account acme --map event_time=Day --map campaign_id=Campaign --map impressions=Imps --tolerance 5% --json',
      'without a mapping file, for a program',
    ],
  ],
  unload: [
    ['adtally unload LOAD --dry-run', 'says what would be deleted'],
    ['adtally unload LOAD', 'takes a wrong load back'],
  ],
  audit: [['adtally audit --since 2026-10-01 --json', 'who changed what since then, for a program']],
  token: [
    ['adtally token create acme --expires 2027-01-31', 'lets an advertiser or publisher ask for reports'],
    ['adtally token list acme', 'with the ids that revoke and link take'],
    ['adtally token revoke ID', 'services refuse it within 5 seconds'],
  ],
  'token create': [
    ['adtally token create acme --expires 2027-01-31 --label nightly', 'prints the token, once'],
    ['adtally token create acme --family campaigns', 'opens the reports of advertisers alone'],
    ['adtally token create --for operator panel', 'runs operations on adtally receive, and opens no report'],
    ['adtally token create --for ingest web-1', 'sends events to adtally receive, and opens no report'],
  ],
  'token list': [['adtally token list acme --json', 'without the tokens themselves']],
  'token link': [
    [
      "adtally token link ID '/v1/export/campaigns.csv?start_time=2026-10-01&end_time=2026-10-31'",
      'for a spreadsheet; valid for a week',
    ],
  ],
  'token revoke': [
    ['adtally token revoke ID', 'an id of adtally token list'],
    ['adtally token revoke --account acme', 'all of an account'],
    ['adtally token revoke --person 8c1f…', 'the sessions of a person who signed in without a token'],
  ],
  limit: [
    ['adtally limit set acme 600', 'of each window'],
    ['adtally limit list', 'the accounts that have a limit of their own'],
  ],
  'limit set': [
    ['adtally limit set acme 600', 'of each window'],
    ['adtally limit set acme null', 'as all others'],
  ],
  'limit list': [['adtally limit list --json', 'the accounts that have a limit of their own']],
  schedule: [
    [
      'adtally schedule create acme campaigns/device anna@example.com --every week',
      'last week, on Mondays at 6',
    ],
    ['adtally schedule list', 'with what was sent, and what was not'],
  ],
  'schedule create': [
    [
      'adtally schedule create acme campaigns/device anna@example.com --every week',
      'last week, on Mondays at 6',
    ],
    [
      'adtally schedule create acme campaigns/date anna@example.com bo@example.com --every day --period month_to_date --at 07:30 --language de',
      'the month so far, each morning',
    ],
    [
      `adtally schedule create news ad_units bo@example.com --every month --attach csv --body '{"compare_to": "previous_month"}'`,
      'with the month before, as CSV',
    ],
  ],
  'schedule list': [['adtally schedule list acme --json', 'of an account, for a program']],
  'schedule pause': [['adtally schedule pause ID', 'an id of adtally schedule list']],
  'schedule resume': [['adtally schedule resume ID', 'what was due meanwhile is not sent']],
  'schedule remove': [['adtally schedule remove ID', 'its links end, too']],
  mail: [
    ['adtally mail', 'until a signal; needs SMTP_URL, MAIL_FROM and PUBLIC_URL'],
    ['adtally mail --once', 'for cron, every few minutes'],
    [
      'adtally mail --again ID',
      'where adtally schedule list says that it is unknown whether a mail was sent',
    ],
  ],
  currency: [
    ['adtally currency set acme EUR', 'reports say so; amounts stay as they are'],
    ['adtally currency list', 'the accounts whose currency is known'],
  ],
  'currency set': [
    ['adtally currency set acme EUR', 'reports say so; amounts stay as they are'],
    ['adtally currency set acme null', 'nothing is said any more'],
  ],
  'currency list': [['adtally currency list --json', 'the accounts whose currency is known']],
  migrate: [
    ['CLICKHOUSE_URL=http://clickhouse:8123 adtally migrate', 'after an update, before the services'],
  ],
  status: [
    ['adtally status', 'one screen, and what to do next'],
    ['adtally status --json', 'for a monitor'],
    ['adtally status --next', 'for cron, which mails what is printed'],
  ],
  backup: [
    ['adtally backup 2026-11-20.tar.zst', 'a file; on a ClickHouse server in its folder backups'],
    [
      'adtally backup s3://backups/adtally/2026-11-20',
      'with the variables of the AWS tools, such as AWS_ACCESS_KEY_ID',
    ],
  ],
  restore: [
    ['adtally restore 2026-11-20.tar.zst --replace', 'in place of what is there; then load the files since'],
  ],
  prune: [
    ['adtally prune --keep 25mo --dry-run', 'says what becomes of raw events before the last 25 months'],
    ['adtally prune --keep 3y --reports', 'reports forget older months, too'],
    ['adtally prune --keep 25mo --anyway', 'also what was taken back in months that are not closed'],
  ],
  check: [['adtally check', 'says in which the tables differ from this version']],
  verify: [['adtally verify --from 2026-10-01 --to 2026-10-31', 'compares October with its raw events']],
  rebuild: [['adtally rebuild --from 2026-10-01 --to 2026-10-31', 'recomputes October; reports go on']],
  close: [
    ['adtally close acme 2026-10', 'what is invoiced stays, whatever is loaded later'],
    ['adtally close --all 2026-10', 'every account that is ready; names those that are not'],
  ],
  closes: [['adtally closes acme --json', 'months, revisions, and what was open then']],
  'closes rows': [['adtally closes rows REVISION | sha256sum', 'prints the name of the revision']],
  'closes manifest': [
    ['adtally closes manifest REVISION > manifest.ndjson', 'sums, loads and signature, to keep or to send'],
  ],
  'check-manifest': [
    [
      'adtally check-manifest rows.ndjson manifest.ndjson --keys https://ads.example.com/.well-known/jwks.json',
      'for whoever was sent both; needs no store',
    ],
  ],
  place: [['adtally place acme 1 2', 'shards 1 and 2 divide the future events of a very large account']],
  grow: [['adtally grow', 'new accounts use shards that were added']],
};

/** Writes the examples of every command below its help. */
export function addExamples(program: Command): void {
  for (const { command, words } of commandsOf(program)) {
    const own = examples[words.join(' ')];
    if (!own) continue;
    const lines = own.map(([line, purpose]) => `  # ${purpose}\n  ${line}`);
    command.addHelpText('after', `\nExamples:\n${lines.join('\n')}`);
  }
}

/** Every command below `parent`, with the words that name it. */
export function* commandsOf(
  parent: Command,
  before: readonly string[] = [],
): Generator<{ readonly command: Command; readonly words: readonly string[] }> {
  for (const command of parent.commands) {
    const words = [...before, command.name()];
    yield { command, words };
    yield* commandsOf(command, words);
  }
}
