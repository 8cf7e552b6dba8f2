import type { HeaderSink } from "../http.ts";
import type { IncomingCall } from "../incoming-call.ts";
import type { Observation } from "../observation.ts";
import { type Admitted, checkAnnouncedSize, type Gate } from "./gate.ts";
import { setRateHeaders } from "./rate-window.ts";

/** Passes the gate before the body is read: records the caller, announces its rate window, refuses too large a body. */
export async function passGate(
  gate: Gate,
  call: IncomingCall,
  response: HeaderSink,
  observation: Observation,
): Promise<Admitted> {
  const admitted = await gate(call);
  observation.setAdmitted(admitted);
  if (admitted.window) setRateHeaders(response, admitted.window);
  checkAnnouncedSize(call);
  return admitted;
}
