import { channel } from "node:diagnostics_channel";
import { DomainError } from "./errors.ts";

/** Ids, amounts and states. Never a key or content of a call: the facts are logged. */
export type Facts = Readonly<Record<string, string | number | bigint | boolean | undefined>>;

/** A violated invariant of the money, which is a bug. The call gets `internal`, and the process exits after a drain. */
export class InvariantViolation extends DomainError {
  readonly invariant: string;
  readonly facts: Facts;

  constructor(invariant: string, facts: Facts) {
    super("internal", { cause: new Error(`invariant violated: ${invariant}`) });
    this.name = "InvariantViolation";
    this.invariant = invariant;
    this.facts = facts;
  }
}

/** A channel, so that a violation is reported even if the error is caught. */
const violations = channel("vx.invariant-violation");

/** Pass facts that are costly to collect as a function. */
export function assertInvariant(condition: boolean, invariant: string, facts: Facts | (() => Facts)): asserts condition {
  if (condition) return;
  throw reportViolation(new InvariantViolation(invariant, typeof facts === "function" ? facts() : facts));
}

/** Tells the process about a violation, also one of another process. */
export function reportViolation(violation: InvariantViolation): InvariantViolation {
  violations.publish(violation);
  return violation;
}

/** Calls the listener for every violation until the returned function is called. */
export function onViolation(listener: (violation: InvariantViolation) => void): () => void {
  const receive = (violation: unknown) => listener(violation as InvariantViolation);
  violations.subscribe(receive);
  return () => violations.unsubscribe(receive);
}
