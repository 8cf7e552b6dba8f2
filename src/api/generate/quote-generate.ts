import type { MessageInitShape } from "@bufbuild/protobuf";
import type { GenerateRequest, QuoteGenerateResponseSchema } from "../../../gen/vx/v1/generate_pb.js";
import type { Meter } from "../../billing/meter.ts";
import { formatMicros } from "../../domain/money.ts";
import { getAccount } from "../../store/accounts.ts";
import type { ApiCall } from "../api-call.ts";
import type { Deps } from "../deps.ts";
import { generationRequestOf } from "./generate-request.ts";

export async function quoteGenerate(
  meter: Meter,
  { database }: Pick<Deps, "database">,
  request: GenerateRequest,
  { key, signal }: ApiCall,
): Promise<MessageInitShape<typeof QuoteGenerateResponseSchema>> {
  const generationRequest = await generationRequestOf(request);
  // Running calls may hold a part of the balance that admission has read.
  const account = await getAccount(database, key.accountId);
  const funds = { balanceMicros: account.balance_micros, heldMicros: account.held_micros };
  const quote = await meter.quote(generationRequest, { key, signal, funds });
  return {
    model: quote.model,
    inputTokens: BigInt(quote.inputTokens),
    maxTokens: quote.maxTokens,
    holdMicros: quote.holdMicros,
    hold: formatMicros(quote.holdMicros),
    fits: quote.refusal === undefined,
    refusal: quote.refusal ?? "",
  };
}
