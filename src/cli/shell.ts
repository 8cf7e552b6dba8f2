import type { Readable, Writable } from "node:stream";

type Output = Writable & { readonly isTTY?: boolean; readonly columns?: number };

/** What a command uses of its process, besides signals. */
export type Shell = {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: NodeJS.ProcessEnv;
  exitCode?: NodeJS.Process["exitCode"];
  exit(code: number): void;
};

/** Of the running command. A process runs one command at a time: a command also sets the currency. */
export let shell: Shell = process;

export function setShell(next: Shell): void {
  shell = next;
}
