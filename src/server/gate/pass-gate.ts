import { measured } from "../../domain/call-trace.ts";
import type { HeaderSink } from "../http.ts";
import type { IncomingCall } from "../incoming-call.ts";
import type { Observation } from "../observation.ts";
import { beforeDeadline } from "./before-deadline.ts";
import { type Admitted, checkAnnouncedSize, type Gate } from "./gate.ts";
import { setRateHeaders } from "./rate-window.ts";

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
