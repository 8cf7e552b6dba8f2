// Cells in a Citus cluster with two workers, compared with plain PostgreSQL of the same version on the same cores.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { parseLanes } from "../../src/domain/lane.ts";
import { buildCitus, connectNodes, moveSchema, startNodes } from "../../test/citus/cluster.ts";
import { createAdmission, raiseLimits } from "../admission-load.ts";
import { createGenerations } from "../billing-load.ts";
import type { Checkout } from "../checkout.ts";
import { type Load, runCallers } from "../load.ts";
import { type Figure, type Part, Unavailable } from "../part.ts";
import { createPayers } from "../payers.ts";
import { startServer, temporaryFolder } from "../server.ts";
import { openCells } from "../store.ts";

type HostsModule = typeof import("../../src/database/driver/hosts.ts");
type MigrateModule = typeof import("../../src/database/cells/migrate-cell.ts");
type WorkersModule = typeof import("../../src/database/cells/citus/workers.ts");

const ACCOUNTS = 1_000;
const CALLERS = 256;
const SECONDS = 2;
const NAMES = { plain: "plain PostgreSQL", one: "Citus, one cell", two: "Citus, a cell on each worker" } as const;
/** Lowest shares of the calls per second of plain PostgreSQL. */
const FLOORS = { admit: 0.35, bill: 0.7 } as const;

type Target = keyof typeof NAMES;
type Arm = `${"admit" | "bill" | "alone"}_${Target}`;

export const citus: Part<Record<Arm, Load>> = {
  rounds: 7,
  warmUpRounds: 2,
  open: async (checkout, cleanup) => {
    const source = process.env.VX_TEST_CITUS_SOURCE;
    if (!source) throw new Unavailable("VX_TEST_CITUS_SOURCE must name a checkout of Citus");
    buildCitus(source);
    const plain = await openTarget(checkout, cleanup, "postgresql", ["0-1023"]);
    const one = await openTarget(checkout, cleanup, "citus", ["0-1023"]);
    const two = await openTarget(checkout, cleanup, "citus", ["0-511", "512-1023"]);
    const arms = (["admit", "bill", "alone"] as const).flatMap((name) => [
      [`${name}_plain`, plain[name]],
      [`${name}_one`, one[name]],
      [`${name}_two`, two[name]],
    ]);
    return Object.fromEntries(arms) as Record<Arm, () => Promise<Load>>;
  },
  figures: [
    ...figuresOf("admit", `admission, ${CALLERS} callers, ${ACCOUNTS} keys`),
    ...figuresOf("bill", `hold and settle, ${CALLERS} callers, ${ACCOUNTS} accounts`),
    ...(Object.keys(NAMES) as Target[]).map(
      (target): Figure<Record<Arm, Load>> => ({
        name: `hold and settle, one caller, p50, ${NAMES[target]}`,
        unit: "ms",
        value: (r) => r[`alone_${target}`].p50Ms,
      }),
    ),
  ],
};

/** One database or cluster of its own, with a cell for each of the ranges of lanes. On Citus, each is on another worker. */
async function openTarget(
  checkout: Checkout,
  cleanup: AsyncDisposableStack,
  engine: "citus" | "postgresql",
  ranges: readonly string[],
) {
  const hasCitus = engine === "citus";
  const { nodes, stop } = await startNodes(hasCitus ? 3 : 1, { hasCitus });
  cleanup.defer(stop);
  const [{ url = "" } = {}, ...workers] = nodes;
  const owner = postgres(url, { max: 1, onnotice: () => undefined });
  const ports = nodes.map(({ port }) => port);
  if (hasCitus) await connectNodes(owner, ports);
  const cells = ranges.map((lanes, i) => {
    return { name: `cell_${i}`, database_url: url, schema: `cell_${i}`, engine, lanes };
  });
  const { migrateCell } = await checkout.load<MigrateModule>("src/database/cells/migrate-cell.ts");
  for (const { name, schema, lanes } of cells) {
    const address = { kind: "url", url } as const;
    await migrateCell({ name, address, schema, engine, lanes: parseLanes(lanes) ?? [] }, []);
  }
  const file = join(temporaryFolder(cleanup), "cells.yaml");
  writeFileSync(file, JSON.stringify({ cells }));
  const server = await startServer(checkout, cleanup, { env: { VX_CELLS: file } });
  const payers = await createPayers(server, ACCOUNTS);
  await server.stop();
  for (const [i, { schema }] of cells.entries()) {
    await raiseLimits(owner, schema);
    if (hasCitus) await moveSchema(owner, schema, workers[i]?.port as number);
  }
  await owner.end();
  const { Hosts } = await checkout.load<HostsModule>("src/database/driver/hosts.ts");
  const { CitusWorkers } = await checkout.load<WorkersModule>("src/database/cells/citus/workers.ts");
  const address = { kind: "url", url } as const;
  const open = (connections: number) => {
    const places = cells.map(({ name, schema }) => {
      return { name, schema, servers: hasCitus ? new CitusWorkers(address, schema) : new Hosts(address) };
    });
    return openCells(checkout, cleanup, places, connections);
  };
  const { admit } = await createAdmission(checkout, await open(2), payers);
  const bill = await createGenerations(checkout, await open(1), payers);
  const anyAccount = () => Math.floor(Math.random() * ACCOUNTS);
  return {
    admit: () => runCallers(CALLERS, SECONDS, () => admit(anyAccount())),
    bill: () => runCallers(CALLERS, SECONDS, () => bill(anyAccount())),
    alone: () => runCallers(1, SECONDS / 2, () => bill(anyAccount())),
  };
}

function figuresOf(item: keyof typeof FLOORS, name: string): Figure<Record<Arm, Load>>[] {
  return (Object.keys(NAMES) as Target[]).flatMap((target) => {
    const perSecond: Figure<Record<Arm, Load>> = {
      name: `${name}, ${NAMES[target]}`,
      unit: "/s",
      value: (r) => r[`${item}_${target}`].perSecond,
    };
    if (target === "plain") return [perSecond];
    const ratio: Figure<Record<Arm, Load>> = {
      name: "  ÷ plain PostgreSQL",
      unit: "×",
      min: FLOORS[item],
      value: (r) => r[`${item}_${target}`].perSecond / r[`${item}_plain`].perSecond,
    };
    return [perSecond, ratio];
  });
}
