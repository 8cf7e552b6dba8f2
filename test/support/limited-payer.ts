import type { MessageInitShape } from "@bufbuild/protobuf";
import type { LimitSchema } from "../../gen/vx/v1/limit_pb.js";
import type { TestKey } from "./fixtures.ts";
import type { Metered } from "./metered.ts";

export type LimitInit = MessageInitShape<typeof LimitSchema>;

/** A key whose account has a balance and limits. */
export async function limitedPayer(metered: Metered, limits: readonly LimitInit[], balance = 1_000_000n): Promise<TestKey> {
  const key = await metered.payer(balance);
  for (const limit of limits) {
    await metered.operator.setLimit({ owner: { case: "accountId", value: key.accountId }, limit });
  }
  return key;
}

/** With 100 tokens at most, such a call of the sandbox takes 0.8 s, needs 110 to 150 tokens or up to 250 micros, and uses few. */
export const SLOW_CALL = "[[tokens=2 delay_ms=400]] hi";
/** The same with 90 tokens at once. */
export const LARGE_CALL = "[[tokens=90]] hi";
export const MAX_TOKENS = 100;

/** Limits that two slow calls fit one after the other, but not at the same time. */
export const ONE_SLOW_CALL: readonly LimitInit[] = [
  { metric: "concurrent", amount: 1n },
  { metric: "cost", window: "month", amount: 400n },
  { metric: "tokens", window: "month", amount: 200n },
];

/** Limits that one large call uses up until the next month. */
export const ONE_LARGE_CALL: readonly LimitInit[] = [
  { metric: "generations", window: "month", amount: 1n },
  { metric: "cost", window: "month", amount: 300n },
  { metric: "tokens", window: "month", amount: 150n },
];
