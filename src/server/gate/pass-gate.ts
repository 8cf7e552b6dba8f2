import { measured } from "../../domain/call-trace.ts";
import { DomainError } from "../../domain/errors.ts";
import type { HeaderSink } from "../http/message.ts";
import type { IncomingCall } from "../incoming-call.ts";
import type { Observation } from "../observation.ts";
import { type Admitted, checkAnnouncedSize, type Gate, setRateHeaders } from "./gate.ts";

/**
 * Passes the gate before the body is read: records the caller, announces its rate window, refuses too large a body and a
 * call whose deadline passes first.
 */
export function passGate(
  gate: Gate,
  call: IncomingCall,
  response: HeaderSink,
  observation: Observation,
  remainingMs?: number,
): Promise<Admitted> {
  const span = observation.trace?.startStage("gate");
  return measured(span, beforeDeadline(gate(call, span), remainingMs)).then((admitted) => {
    observation.setAdmitted(admitted);
    if (admitted.window) setRateHeaders(response, admitted.window);
    checkAnnouncedSize(call);
    return admitted;
  });
}

/** Settles like the work, or rejects when the deadline of the call passes before. */
export function beforeDeadline<T>(work: Promise<T>, remainingMs: number | undefined): Promise<T> {
  if (remainingMs === undefined) return work;
  const passed = Promise.withResolvers<never>();
  const onDeadline = () => passed.reject(deadlineExceeded());
  const timer = remainingMs > 0 ? setTimeout(onDeadline, remainingMs) : undefined;
  if (!timer) onDeadline();
  return Promise.race([work, passed.promise]).finally(() => clearTimeout(timer));
}

function deadlineExceeded(): DomainError {
  return new DomainError("deadline_exceeded", {
    message: "The deadline of the call passed before it started.",
  });
}
