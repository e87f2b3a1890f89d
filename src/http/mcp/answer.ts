import { createMcpHandler } from '@modelcontextprotocol/server';
import { type ToolsDeps, toolsServer } from './tools.ts';

/** Answers one message of the protocol; a faulty message gets an error of the protocol. */
export async function answerMcp(
  request: Request,
  deps: ToolsDeps,
  onError: (error: unknown) => void,
): Promise<{ status: number; text: string; type: string | null }> {
  // Nothing of a server outlives its request, and nothing is subscribed to.
  const handler = createMcpHandler(() => toolsServer(deps), { maxSubscriptions: 0, onerror: onError });
  try {
    const response = await handler.fetch(request);
    const { status, headers } = response;
    return { status, text: await response.text(), type: headers.get('content-type') };
  } finally {
    await handler.close();
  }
}
