import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as wait } from "node:timers/promises";
import { cleanEnv } from "../support/clean-env.ts";
import { START, START_ENV } from "../support/start-script.ts";

const PRELOAD = new URL("./preload.ts", import.meta.url).href;
const START_MS = 30_000;

export type ServerSettings = {
  readonly env: Readonly<Record<string, string>>;
  /** File for all output of the server. */
  readonly logFile: string;
  readonly probeFile: string;
};

/** A server process as in production. It keeps its two ports across restarts. */
export class RunServer {
  readonly #settings: ServerSettings;
  #child: ChildProcess | undefined;
  #exited: Promise<number | string> = Promise.resolve("never started");
  port = 0;
  adminPort = 0;
  #takesSignals = false;
  /** The id of the current process in the database. */
  id = "";
  starts = 0;

  constructor(settings: ServerSettings) {
    this.#settings = settings;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Whether it has started and not been told to stop, so that it knows every signal. */
  get isReady(): boolean {
    return this.isRunning && this.#takesSignals;
  }

  logText(): string {
    return readFileSync(this.#settings.logFile, "utf8");
  }

  probeText(): string {
    return readFileSync(this.#settings.probeFile, "utf8");
  }

  /** Starts the server until it accepts calls. Retries while the database is unreachable. */
  async start(): Promise<void> {
    const until = performance.now() + START_MS;
    while (!(await this.#tryToStart())) {
      if (performance.now() > until) throw new Error(`the server does not start:\n${this.logText().slice(-2_000)}`);
      await wait(200);
    }
  }

  /** Sends SIGKILL. */
  async kill(): Promise<void> {
    if (this.isRunning) this.#child?.kill("SIGKILL");
    await this.#exited;
  }

  /** Sends SIGTERM and waits for the exit code. */
  async terminate(): Promise<number | string> {
    this.#takesSignals = false;
    if (this.isRunning) this.#child?.kill("SIGTERM");
    return await this.#exited;
  }

  signal(name: NodeJS.Signals): void {
    this.#child?.kill(name);
  }

  async #tryToStart(): Promise<boolean> {
    const { env, logFile, probeFile } = this.#settings;
    this.#takesSignals = false;
    const child = spawn(process.execPath, ["--import", PRELOAD, ...START], {
      env: cleanEnv({
        ...START_ENV,
        ...env,
        PORT: String(this.port),
        VX_ADMIN_PORT: String(this.adminPort),
        TORTURE_PROBE_FILE: probeFile,
      }),
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#child = child;
    this.#exited = once(child, "exit").then(([code, signal]) => (code ?? signal) as number | string);
    return await new Promise<boolean>((resolve) => {
      const read = (line: string) => {
        appendFileSync(logFile, `${line}\n`);
        const admin = /"admin":"http:\/\/[^"]*:(\d+)"/.exec(line)?.[1];
        if (admin !== undefined) this.adminPort = Number(admin);
        const ready = /^vx ready on \S*:(\d+)$/.exec(line)?.[1];
        if (ready === undefined) return;
        this.port = Number(ready);
        this.#takesSignals = true;
        this.starts++;
        resolve(true);
      };
      createInterface({ input: child.stdout }).on("line", read);
      createInterface({ input: child.stderr }).on("line", read);
      void this.#exited.then(() => resolve(false));
    });
  }
}
