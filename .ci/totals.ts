// Prints "N passed, N failed" from the test runner's own reports.
import { readFileSync } from "node:fs";

type Report = { numPassedTests: number; numFailedTests: number; numTotalTests: number };

const reports = process.argv.slice(2).map((path) => JSON.parse(readFileSync(path, "utf8")) as Report);
const sum = (value: (report: Report) => number) => reports.reduce((total, report) => total + value(report), 0);
if (reports.length === 0 || reports.some(({ numTotalTests }) => numTotalTests === 0)) {
  console.error("no test was run");
  process.exit(1);
}
console.log(`${sum((report) => report.numPassedTests)} passed, ${sum((report) => report.numFailedTests)} failed`);
