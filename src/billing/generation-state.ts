import type { Charge } from "../store/bill-item.ts";
import type { UpstreamEnd } from "../upstreams/upstream.ts";
import type { Stop } from "./stops.ts";

/** Why a generation stopped. */
export type Ending =
  | { readonly kind: "completed"; readonly done: UpstreamEnd }
  | { readonly kind: "failed"; readonly error: unknown }
  /** The error that the reader gets. */
  | { readonly kind: "stopped"; readonly why: Stop; readonly error: unknown };

export type GenerationState =
  | { readonly kind: "running" }
  /** The reader disconnected; the generation continues, for a retry with the same idempotency key. */
  | { readonly kind: "detached" }
  | { readonly kind: "settling" }
  /** The hold has ended. The charge is undefined if nothing was charged. */
  | { readonly kind: "settled"; readonly charge: Charge | undefined }
  /** The hold could not be ended; another server releases it. */
  | { readonly kind: "unsettled" };

type Kind = GenerationState["kind"];

const NEXT: Readonly<Record<Kind, readonly Kind[]>> = {
  running: ["detached", "settling"],
  detached: ["settling"],
  settling: ["settled", "unsettled"],
  settled: [],
  unsettled: [],
};

export function canBecome(from: Kind, to: Kind): boolean {
  return NEXT[from].includes(to);
}
