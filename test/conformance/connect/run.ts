import { spawnSync } from "node:child_process";
import { connectSuite } from "../tools.ts";

const VERSION = "v1.0.7";
const FOLDER = "test/conformance/connect";

/** The suite's message for an error with one detail more than the test case defines. */
const EXTRA_DETAIL = [
  /^;? ?actual error contain 1 details; expecting 0$/,
  /^connect error JSON: details\[0\]: could not check debug data because message type "google\.rpc\.ErrorInfo" could not be resolved/,
];

/** The suite's report of one case: failed, or failed as expected. */
type Report = { readonly title: string; readonly complaints: string[] };

/** Runs Connect's conformance suite against the transport. True if only known cases fail. */
export function runConnectSuite(): boolean {
  const { runner, descriptors } = connectSuite(VERSION);
  const { status, stdout, stderr } = spawnSync(
    runner,
    [
      ...["--mode", "server", "--conf", `${FOLDER}/config.yaml`, "--known-failing", `@${FOLDER}/known-failing.txt`],
      ...["--", process.execPath, `${FOLDER}/server.ts`, descriptors],
    ],
    { encoding: "utf8", maxBuffer: 1 << 28 },
  );
  const output = stdout + stderr;
  const wrong = reportsIn(output).filter(isWrong);
  for (const { title, complaints } of wrong) console.error([title, ...complaints].join("\n    "));
  const totals = output.slice(Math.max(0, output.indexOf("Total cases:")));
  if (status === 0 && wrong.length === 0) console.log(totals.trim());
  else console.error(`${totals.trim()}\n${wrong.length} fail for another reason than the extra detail.`);
  return status === 0 && wrong.length === 0;
}

function reportsIn(output: string): Report[] {
  const reports: Report[] = [];
  for (const line of output.split("\n")) {
    if (line.startsWith("Total cases:")) break;
    if (/^(?:FAILED|INFO): /.test(line)) reports.push({ title: line, complaints: [] });
    else if (line.trim() !== "") reports.at(-1)?.complaints.push(line.trim());
  }
  return reports;
}

/** A known failure must be caused only by the extra detail. */
function isWrong({ title, complaints }: Report): boolean {
  return title.startsWith("FAILED") || !complaints.every((text) => EXTRA_DETAIL.some((known) => known.test(text)));
}
