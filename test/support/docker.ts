import { getContainerRuntimeClient } from 'testcontainers';

/** Ends the run with one sentence when Docker does not answer, before any test begins. */
export default async function requireDocker(): Promise<void> {
  await getContainerRuntimeClient().catch(() => {
    process.stderr.write(
      'test:containers needs Docker: start it, or run npm test, which does without replicas\n',
    );
    process.exit(1);
  });
}
