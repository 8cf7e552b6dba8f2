import Anthropic, { type ClientOptions } from "@anthropic-ai/sdk";
import type { TestApp } from "./app.ts";

/** Anthropic's official client with another address, a Bearer token and no retries. */
export function anthropic(app: TestApp, { secret }: { secret: string }, options: ClientOptions = {}): Anthropic {
  return new Anthropic({ baseURL: app.url, authToken: secret, apiKey: null, maxRetries: 0, ...options });
}

/** The error that the client throws for a call. */
export async function refusalOf(call: PromiseLike<unknown>): Promise<InstanceType<typeof Anthropic.APIError>> {
  const error = await Promise.resolve(call).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof Anthropic.APIError) return error;
  throw new Error("the call ended without an error of the API", { cause: error });
}
