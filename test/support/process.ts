import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { Agent, getGlobalDispatcher, setGlobalDispatcher } from "undici";
import { vi } from "vitest";
import { cleanEnv } from "./clean-env.ts";

export const SERVER: string = fileURLToPath(new URL("../../src/vx.js", import.meta.url));

/** A server in a separate process, as in production. */
export type ServerProcess = {
  readonly child: ChildProcess;
  stdout(): string;
  stderr(): string;
  /** Waits for a matching line of the output and returns the first group of the match. */
  line(pattern: RegExp): Promise<string>;
  /** The address of the operator listener of a server that is ready. */
  adminUrl(): string;
  /** Sends the signal and waits for the exit. Returns the exit code or the name of the signal. */
  end(signal: NodeJS.Signals): Promise<number | string>;
  exited(): Promise<number | string>;
};

export type ProcessOptions = {
  /** The command to run instead of the program itself. */
  readonly command?: readonly [string, ...string[]];
  /** A file descriptor for stderr. By default stderr is a pipe that is read. */
  readonly stderr?: number;
  /** Whether signals go to all processes that the command starts, as Ctrl-C does. */
  readonly ownGroup?: boolean;
};

export function startServerProcess(env: Record<string, string>, options: ProcessOptions = {}): ServerProcess {
  const [command, ...args] = options.command ?? [process.execPath, SERVER, "serve"];
  const child = spawn(command, args, {
    env: cleanEnv({ PORT: "0", VX_ADMIN_PORT: "0", ...env }),
    stdio: ["ignore", "pipe", options.stderr ?? "pipe"],
    detached: options.ownGroup ?? false,
  });
  let stdout = "";
  let stderr = "";
  child.stdout?.on("data", (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stderr?.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const exited = once(child, "exit").then(([code, signal]) => (code ?? signal) as number | string);
  return {
    child,
    stdout: () => stdout,
    stderr: () => stderr,
    adminUrl: () => /"admin":"([^"]+)"/.exec(stderr)?.[1] ?? "",
    exited: () => exited,
    line: (pattern) =>
      vi.waitFor(
        () => {
          const found = pattern.exec(stdout);
          if (!found) throw new Error(`no line like ${pattern} in:\n${stdout}\n${stderr}`);
          return found[1] ?? found[0];
        },
        { timeout: 45_000, interval: 10 },
      ),
    end: async (signal) => {
      closeIdleConnections();
      if (options.ownGroup) process.kill(-(child.pid as number), signal);
      else child.kill(signal);
      return await exited;
    },
  };
}

/** Of fetch(). A server that stops waits five seconds for its callers to close such connections. */
export function closeIdleConnections(): void {
  const dispatcher = getGlobalDispatcher();
  setGlobalDispatcher(new Agent());
  void dispatcher.close();
}
