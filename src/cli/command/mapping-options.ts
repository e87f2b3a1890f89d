import { type Command, Option } from 'commander';
import { formats } from '../../../ingest/formats/formats.ts';
import { positiveInteger, repeated } from './arguments.ts';

export const formatOption = () =>
  new Option('--format <format>', 'the format, if the file name does not end in it').choices(
    Object.keys(formats),
  );

export const encodingOption = () =>
  new Option('--encoding <name>', 'of text that is not Unicode, such as windows-1252');

/** How a file is written, and how its columns become the fields of events. */
export function addMappingOptions(command: Command): Command {
  return command
    .optionsGroup('How the file is written:')
    .addOption(formatOption())
    .addOption(encodingOption())
    .option('--delimiter <character>', 'between cells, if no comma (CSV) or tab (TSV); blanks: any number')
    .option('--escapes', 'cells have backslash escapes and no quotes, as databases dump them')
    .option('--no-header', 'the first line is a record; columns are called 1, 2, …')
    .option('--skip-lines <lines>', 'lines before the header', positiveInteger)
    .option('--records <path>', 'of JSON: the array that holds the records, such as data or report.rows')
    .option('--timezone <zone>', 'the IANA time zone of times that name none')
    .option('--dates <kind>', 'numbers among times are serial dates: excel, or excel-1904 of old Macs')
    .optionsGroup('How columns become fields:')
    .option('--mapping <file>', 'a JSON file with columns, constants and expressions, see examples/')
    .option('--map <field=column>', 'read a field from another column (repeatable)', repeated)
    .option('--set <field=value>', 'give a field the same value in every record (repeatable)', repeated)
    .option('--where <expression>', "leave out records for which this is false, such as {Day} != 'Total'")
    .option('--ignore-unknown', 'ignore columns that events do not have, instead of refusing the file')
    .option('--round-money', 'round amounts to six decimal places instead of rejecting their rows');
}
