import { DomainError } from "../../domain/errors.ts";
import { TooMuchUsage } from "../../store/usage-sums.ts";

/** Answers a query that reads too much with an error that names the field. */
export async function refusingTooMuch<Result>(reading: Promise<Result>): Promise<Result> {
  try {
    return await reading;
  } catch (error) {
    if (!(error instanceof TooMuchUsage)) throw error;
    throw DomainError.ofField(
      "from",
      "the range has too much usage for one page; choose a later time, or group by hour or day",
    );
  }
}
