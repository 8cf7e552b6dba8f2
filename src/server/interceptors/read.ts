import { setImmediate as immediate } from "node:timers/promises";
import type { Message } from "@bufbuild/protobuf";
import type { BodyBudget } from "../../codec/body-budget.ts";
import { DomainError } from "../../domain/errors.ts";
import type { AdmittedCall, Interceptor, ReadCall } from "./interceptor.ts";

/** Reads the request, whose memory counts against the budget until the call has ended. */
export function read(budget: BodyBudget): Interceptor<AdmittedCall, ReadCall> {
  return (next) => async (call) => {
    const share = budget.openShare(call.admitted.key?.accountId);
    try {
      checkAnnouncedSize(call);
      const reading = call.read(share);
      const message = reading instanceof Promise ? await readLate(call, reading) : reading;
      await next(Object.assign(call, { message, share }));
    } finally {
      share.release();
    }
  };
}

/** The 413 of a call that announces too large a body; a body without an announced size is checked as it is read. */
function checkAnnouncedSize({ contentLength, maxBodyBytes }: AdmittedCall): void {
  if (contentLength !== undefined && contentLength > maxBodyBytes) {
    throw new DomainError("request_too_large", { message: `The request body can have at most ${maxBodyBytes} bytes.` });
  }
}

/**
 * The message of a call whose body did not arrive with its head. The caller may have lost the right to the call since then: changes and
 * holds prove it again in the database, other methods authenticate again.
 */
async function readLate(call: AdmittedCall, reading: Promise<Message>): Promise<Message> {
  const isChecked = call.policy.metered || call.request.complete;
  const isLate = !isChecked && (await Promise.race([reading.then(no, no), immediate(true)]));
  const message = await reading;
  if (isLate) await call.recheck();
  return message;
}

const no = () => false;
