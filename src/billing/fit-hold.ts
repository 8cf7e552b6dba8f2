import type { Model } from "../domain/model.ts";
import type { HoldOutcome } from "../store/bill-item.ts";
import type { GenerationRequest } from "./generation-request.ts";
import { countedSize, minSize, type Payer, type Size, sizeOf, sizeWithin } from "./generation-size.ts";
import type { Tokens } from "./token-counts.ts";

type HoldToFit = {
  readonly model: Model;
  readonly request: GenerationRequest;
  readonly payer: Payer;
  readonly tokens: Pick<Tokens, "countPrompt">;
  readonly signal: AbortSignal;
};

/**
 * Tries sizes until one is held. If the first does not fit the balance, the input is counted, then a default
 * output limit is lowered. Only `tryHold` decides, because a balance that was read earlier may be out of date.
 */
export async function fitHold(
  { model, request, payer, tokens, signal }: HoldToFit,
  tryHold: (size: Size) => Promise<HoldOutcome>,
): Promise<{ readonly held: HoldOutcome; readonly size: Size }> {
  const first = sizeOf(model, request, payer, tokens, signal);
  let size = first instanceof Promise ? await first : first;
  let held = await tryHold(size);
  if (held.outcome === "insufficient" && !size.counted) {
    size = await countedSize(model, request, tokens, { signal, payer: payer.accountId });
    held = await tryHold(size);
  }
  // Another call may take the funds in between, so the last attempt uses the lowest limit.
  for (const lower of [sizeWithin, minSize]) {
    if (held.outcome !== "insufficient" || size.maxTokens === size.minTokens) break;
    const availableMicros = held.balanceMicros - held.heldMicros;
    size = lower(model, size, availableMicros);
    if (size.amountMicros <= availableMicros) held = await tryHold(size);
  }
  return { held, size };
}
