import { readBytes } from "../codec/body.ts";
import type { BodyBudget } from "../codec/body-budget.ts";
import { DomainError } from "../domain/errors.ts";
import { InvalidEvent, type PaymentEvent, ProviderError } from "../payments/provider.ts";
import type { Log } from "../telemetry/log.ts";
import { type ServePath, sendJson } from "./http/message.ts";

const MAX_BODY_BYTES = 524_288;
const MAX_RUNNING = 32;

type Options = {
  readonly readEvent: (body: Buffer, signature: string) => Promise<PaymentEvent | undefined>;
  readonly handle: (event: PaymentEvent) => Promise<void>;
  readonly budget: BodyBudget;
  readonly log: Log;
};

/** POST /stripe/events: the events of Stripe. Any error makes Stripe deliver the event again. */
export function paymentEvents({ readEvent, handle, budget, log }: Options): ServePath {
  let running = 0;
  return async (request, response, requestId) => {
    const share = budget.openShare(undefined);
    running++;
    try {
      if (running > MAX_RUNNING) throw new DomainError("overloaded");
      const signature = request.headers["stripe-signature"];
      if (typeof signature !== "string") throw invalid("The header Stripe-Signature is required.");
      const body = await readBytes(request, { maxBytes: MAX_BODY_BYTES, share, bodyMs: share.bodyMs });
      const event = await readEvent(body, signature);
      if (event) {
        await handle(event);
        log.info({ request_id: requestId, event: event.id, type: event.type }, "handled a payment event");
      }
      sendJson(response, 200, '{"received":true}');
    } catch (error) {
      if (error instanceof ProviderError) log.warn({ err: error, request_id: requestId }, "a payment event failed");
      throw publicError(error);
    } finally {
      running--;
      share.release();
    }
  };
}

function publicError(error: unknown): unknown {
  if (error instanceof InvalidEvent) return invalid(error.message);
  return error instanceof ProviderError ? new DomainError("unavailable", { cause: error }) : error;
}

function invalid(message: string): DomainError {
  return new DomainError("invalid_argument", { message });
}
