import OpenAI, { type ClientOptions } from "openai";
import type { TestApp } from "./app.ts";
import { createTestKey, type Operator, operatorOf, type TestKey, type TestKeyOptions } from "./fixtures.ts";
import { started } from "./started.ts";

export const SMALL = "vx-sandbox-small";

/** OpenAI's official client with another address and key, and without retries. */
export function openAi(app: TestApp, { secret }: { secret: string }, options: ClientOptions = {}): OpenAI {
  return new OpenAI({ baseURL: `${app.url}/v1`, apiKey: secret, maxRetries: 0, ...options });
}

/** A key whose account has $10.00. */
export async function createPaidKey(operator: Operator, options: TestKeyOptions = {}): Promise<TestKey> {
  const key = await createTestKey(operator, options);
  await operator.creditAccount({
    accountId: key.accountId,
    amountMicros: 10_000_000n,
    reason: "invoice 1001",
    idempotencyKey: key.id,
  });
  return key;
}

export function usePaidKey(app: TestApp, options?: TestKeyOptions): TestKey {
  return started(() => createPaidKey(operatorOf(app), options));
}

/** The generation entries of the account's ledger, newest first. */
export async function chargesOf(operator: Operator, { accountId }: TestKey) {
  const { entries } = await operator.listLedgerEntries({ accountId });
  return entries.filter(({ kind }) => kind === "generation");
}

export function said(content: string): { role: "user"; content: string } {
  return { role: "user", content };
}

/** The error that the client throws for a call. */
export async function failureOf(call: PromiseLike<unknown>): Promise<InstanceType<typeof OpenAI.APIError>> {
  const error = await Promise.resolve(call).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof OpenAI.APIError) return error;
  throw new Error("the call ended without an error of the API", { cause: error });
}
