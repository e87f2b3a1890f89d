import { relative } from 'node:path';
import type { Reporter, TestCase, TestModule, Vitest } from 'vitest/node';

/** Says below the failures how each of them is run alone, with its seed where its name has one. */
export default class RepeatReporter implements Reporter {
  #vitest: Vitest | undefined;

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const failed = modules.flatMap((module) => [...module.children.allTests('failed')]);
    const broken = modules.filter((module) => module.errors().length > 0);
    const commands = [
      ...failed.map((test) => this.#only(test)),
      ...broken.map((module) => this.#all(module)),
    ];
    if (commands.length === 0) return;
    process.stderr.write(`To run what failed alone:\n${commands.map((line) => `  ${line}\n`).join('')}\n`);
  }

  #all({ moduleId }: TestModule): string {
    const vitest = this.#vitest;
    const mode = vitest?.vite.config.mode === 'thorough' ? '--mode thorough ' : '';
    return `npx vitest run ${mode}${relative(vitest?.config.root ?? '', moduleId)}`;
  }

  #only({ fullName, module }: TestCase): string {
    const [, seed] = /\(seed (\d+)\)/.exec(fullName) ?? [];
    // As a pattern of the names from the outermost `describe` to the test, with blanks between them.
    const pattern = fullName.replaceAll(' > ', ' ').replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
    const quoted = `'${pattern.replaceAll("'", "'\\''")}'`;
    return `${seed === undefined ? '' : `TEST_SEED=${seed} `}${this.#all(module)} -t ${quoted}`;
  }
}
