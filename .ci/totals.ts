// Prints "N passed, N failed" from the test runner's own report.
import { readFileSync } from "node:fs";

type Report = { numPassedTests: number; numFailedTests: number; numTotalTests: number };

const report = JSON.parse(readFileSync(process.argv[2] ?? "", "utf8")) as Report;
if (report.numTotalTests === 0) {
  console.error("no test was run");
  process.exit(1);
}
console.log(`${report.numPassedTests} passed, ${report.numFailedTests} failed`);
