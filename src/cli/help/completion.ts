import { Argument, type Command } from 'commander';
import { print } from '../command.ts';
import { commandsOf } from './examples.ts';

const shells = { bash: forBash, zsh: forZsh, fish: forFish } as const;

/** `completion`: prints what a shell needs to complete commands, options and their values. */
export function addCompletion(program: Command): void {
  program
    .command('completion')
    .description('print a script with which a shell completes commands and options')
    .addArgument(new Argument('<shell>').choices(Object.keys(shells)))
    .action((shell: keyof typeof shells) => print(shells[shell](program)));
}

/** A place on the command line, the words that may stand there, and the values of its options. */
interface Place {
  readonly path: string;
  readonly words: readonly string[];
  readonly choices: readonly (readonly [option: string, values: readonly string[]])[];
}

function placesOf(program: Command): Place[] {
  return [{ command: program, words: [] as readonly string[] }, ...commandsOf(program)].map(
    ({ command, words }) => {
      const options = command.options.filter(({ hidden }) => !hidden);
      return {
        path: ['adtally', ...words].join(' '),
        words: [
          ...command.commands.map((child) => child.name()),
          ...command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices),
          ...options.map(({ long, short }) => long ?? short ?? ''),
          '--help',
        ],
        choices: options.flatMap(({ long, argChoices }) =>
          long && argChoices ? [[long, argChoices] as const] : [],
        ),
      };
    },
  );
}

/** Walks along the words before the cursor as far as they name commands; what follows may be a file. */
function forBash(program: Command): string {
  const places = placesOf(program);
  const known = places.slice(1).map(({ path }) => `'${path}'`);
  const words = places.map((place) => `    '${place.path}') words='${place.words.join(' ')}' ;;`);
  const values = places.flatMap(({ path, choices }) =>
    choices.map(([option, of]) => `    '${path} ${option}') words='${of.join(' ')}' ;;`),
  );
  return `# adtally completion bash
_adtally() {
  local path=adtally words='' word i current="\${COMP_WORDS[COMP_CWORD]}"
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="$path \${COMP_WORDS[i]}"
    case "$word" in ${known.join('|')}) path="$word" ;; esac
  done
  case "$path" in
${words.join('\n')}
  esac
  case "$path \${COMP_WORDS[COMP_CWORD - 1]}" in
${values.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _adtally adtally`;
}

function forZsh(program: Command): string {
  return `#compdef adtally
(( $+functions[compdef] )) || { autoload -U +X compinit && compinit -u -D }
autoload -U +X bashcompinit && bashcompinit
${forBash(program)}`;
}

function forFish(program: Command): string {
  const lines = [...commandsOf(program)].flatMap(({ command, words }) => {
    const before = words.slice(0, -1);
    const siblings = (before.length === 0 ? program.commands : (command.parent?.commands ?? [])).map((each) =>
      each.name(),
    );
    const here = [
      ...before.map((word) => `__fish_seen_subcommand_from ${word}`),
      `not __fish_seen_subcommand_from ${siblings.join(' ')}`,
    ].join('; and ');
    const inside = words.map((word) => `__fish_seen_subcommand_from ${word}`).join('; and ');
    const named = `complete -c adtally -f -n '${here}' -a ${command.name()} -d ${quoted(command.description())}`;
    const options = command.options
      .filter(({ hidden }) => !hidden)
      .map(({ long = '', description, argChoices, required }) => {
        const values = argChoices ? ` -x -a '${argChoices.join(' ')}'` : required ? ' -r' : '';
        return `complete -c adtally -n '${inside}' -l ${long.slice(2)}${values} -d ${quoted(description)}`;
      });
    return [named, ...options];
  });
  return `# adtally completion fish\n${lines.join('\n')}`;
}

function quoted(text: string): string {
  return `'${text.replace(/['\\]/g, '\\$&')}'`;
}
