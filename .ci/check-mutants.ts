// Fails for a mutant of test/mutants whose text is not found exactly once: change its text with the code that it is about.
import { placeMutants, readMutants } from "../test/mutants/mutants.ts";

const { problems } = placeMutants(readMutants());
if (problems.length > 0) {
  console.error(problems.join("\n"));
  process.exitCode = 1;
}
