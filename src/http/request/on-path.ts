import type { Handler, Hono } from 'hono';
import type { HttpEnv } from './env.ts';
import { Problem } from './problems.ts';

/** What a path takes, and whose reports it opens: a login token of another family is refused. */
export interface PathRules {
  /** As `Allow` has it: whatever answers GET answers HEAD. */
  readonly allow: 'GET, HEAD' | 'POST' | 'GET, HEAD, POST';
  readonly family?: string;
}

/** Answers what a path takes by these handlers, refuses all other methods, and names the path for logs, metrics and logins. */
export function onPath(
  app: Hono<HttpEnv>,
  path: string,
  { allow, family }: PathRules,
  ...handlers: readonly Handler<HttpEnv>[]
): void {
  app.use(path, (c, next) => {
    c.set('endpoint', path);
    c.set('family', family);
    return next();
  });
  app.on(allow.split(', '), [path], ...handlers);
  app.all(path, otherMethods(allow));
}

/** Refuses what comes by a method that the routes before it do not take. */
export function otherMethods(allow: PathRules['allow']): Handler<HttpEnv> {
  return function otherMethodsHandler() {
    throw new Problem('method_not_allowed', `this path takes ${allow}`, { headers: { Allow: allow } });
  };
}
