// Runs the conformance suites of Connect and protobuf. A suite that cannot run on this machine is skipped.
import { runConnectSuite } from "./connect/run.ts";
import { runProtobufSuite } from "./protobuf/run.ts";
import { Unavailable } from "./tools.ts";

const suites: readonly [name: string, run: () => boolean][] = [
  ["Connect, gRPC and gRPC-Web", runConnectSuite],
  ["REST JSON against protobuf's suite", runProtobufSuite],
];

for (const [name, run] of suites) {
  console.log(`\nConformance: ${name}`);
  try {
    if (!run()) process.exitCode = 1;
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error;
    console.warn(`SKIPPED, nothing was tested: ${error.message}`);
  }
}
