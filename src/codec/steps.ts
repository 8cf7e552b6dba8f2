/** Work on a large body that stops after each part of it, so that others can run in between. */
export type Steps<Result> = Generator<undefined, Result, undefined>;

/** Does it all at once: for what is known to be small. */
export function finish<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** Does it part by part; whatever else has come in the meantime runs in between. */
export async function finishInTurns<Result>(steps: Steps<Result>): Promise<Result> {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    await letOthersRun();
  }
}

function letOthersRun(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
