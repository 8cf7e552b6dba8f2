import { nextTurn } from "../domain/fairness.ts";

/** Work on a large body that pauses after each part, so that other calls run in between. */
export type Steps<Result> = Generator<undefined, Result, undefined>;

/** Runs all parts at once, for small bodies. */
export function finish<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** Runs the parts in separate turns of the event loop; the result is returned in a turn of its own. */
export async function finishInTurns<Result>(steps: Steps<Result>): Promise<Result> {
  for (;;) {
    const step = steps.next();
    await nextTurn();
    if (step.done) return step.value;
  }
}
