import type { Arena } from "../arena.ts";
import type { Violation } from "./facts.ts";

/** The invariants that the servers themselves found violated, by their logs. */
export function checkInvariants(arena: Arena): Violation[] {
  return arena.servers
    .flatMap((server) => server.logText().split("\n"))
    .filter((line) => line.includes('"msg":"invariant violated"'))
    .map((text) => ({ rule: "no server violates an invariant", text }));
}
