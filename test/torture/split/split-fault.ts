import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type postgres from "postgres";
import type { SplitStep } from "../../../src/database/cells/split-cell.ts";
import type { Lane } from "../../../src/domain/lane.ts";
import { laneRanges } from "../../../src/domain/lane.ts";
import { cleanEnv } from "../../support/clean-env.ts";
import { urlTo } from "../../support/embedded.ts";
import type { ArenaCell, ArenaCells } from "../cells.ts";
import type { Fault, FaultScene } from "../faults/fault.ts";

const VX = fileURLToPath(new URL("../../../src/vx.js", import.meta.url));
const SPLIT_AND_DIE = fileURLToPath(new URL("./split-and-die.ts", import.meta.url));
export const OWNERS_RULE = "each lane has one owner";

type SplitFault = {
  /** Chooses the cell that gives up half of its lanes. */
  readonly choose: (cells: readonly ArenaCell[]) => ArenaCell;
  /** After each of these steps the command is killed and started again. */
  readonly killedAfter: readonly SplitStep[];
  readonly onSplit: (unownedMs: number | undefined) => void;
};

/** Half of the lanes of a cell move to a standby. Callers notice nothing but latency. */
export function splitUnderLoad({ choose, killedAfter, onSplit }: SplitFault): Fault {
  let source: ArenaCell | undefined;
  let standby: ArenaCell | undefined;
  const killed = killedAfter.length === 0 ? "" : `, killed ${killedAfter.length} times`;
  return {
    name: `split${killed}`,
    isHarmless: true,
    prepare: async ({ cells, servers }) => {
      source = choose(cells.all);
      standby = await cells.attach(source, servers);
    },
    strike: async ({ arena: { cells }, onViolation }) => {
      if (!source || !standby) throw new Error("the standby is not attached");
      const lanes = await halfOf(source);
      const args: SplitArguments = [source.name, urlTo(standby.server), laneRanges(lanes)];
      for (const step of killedAfter) await splitAndDie(cells, step, args, onViolation);
      const { code, text } = await split(cells, args);
      if (code !== 0) onViolation("the split succeeds", text);
      else onSplit((JSON.parse(text) as { unowned_ms?: number }).unowned_ms);
      for (const problem of await problemsOf(cells)) onViolation(OWNERS_RULE, problem);
    },
  };
}

/** The source, the URL of the standby, and the lanes. */
export type SplitArguments = readonly [source: string, url: string, lanes: string];

/** Runs the command, which is killed after the step. */
export async function splitAndDie(
  cells: ArenaCells,
  step: SplitStep,
  args: SplitArguments,
  onViolation: FaultScene["onViolation"],
): Promise<void> {
  const { signal, text } = await run(cells, [SPLIT_AND_DIE, step, ...args]);
  if (signal !== "SIGKILL") onViolation("the command reaches each step", `${step}: ${text}`);
}

export function split(cells: ArenaCells, [source, url, lanes]: SplitArguments) {
  return run(cells, [VX, "cells", "split", source, "--to", url, "--lanes", lanes, "--json"]);
}

export async function halfOf({ owner }: ArenaCell): Promise<Lane[]> {
  const rows = await lanesOf(owner);
  return rows.slice(Math.ceil(rows.length / 2)).map(({ lane }) => lane);
}

async function run(cells: ArenaCells, args: readonly string[]) {
  const child = spawn(process.execPath, args, {
    env: cleanEnv({ VX_CELLS: cells.operatorFile() }),
    stdio: ["ignore", "pipe", "pipe"],
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
  }
  const [code, signal] = (await once(child, "close")) as [number | null, string | null];
  return { code, signal, text };
}

/** Waits while the cell is down. */
async function lanesOf(owner: postgres.Sql): Promise<readonly { lane: Lane }[]> {
  for (;;) {
    try {
      return await owner<{ lane: Lane }[]>`SELECT lane FROM vx.lanes WHERE is_owned ORDER BY lane`;
    } catch {
      await wait(200);
    }
  }
}

/** Lanes with no owner, or with two. */
export async function problemsOf(cells: ArenaCells): Promise<string[]> {
  const owners = new Map<Lane, string>();
  const problems: string[] = [];
  for (const { name, owner } of cells.all) {
    for (const { lane } of await lanesOf(owner)) {
      const other = owners.get(lane);
      if (other !== undefined) problems.push(`lane ${lane} belongs to ${other} and ${name}`);
      owners.set(lane, name);
    }
  }
  if (owners.size !== 1_024) problems.push(`${1_024 - owners.size} lanes have no owner`);
  return problems;
}
