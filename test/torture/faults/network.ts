import { setTimeout as wait } from "node:timers/promises";
import type { Line, NetworkConditions } from "../line.ts";
import type { Fault, FaultScene } from "./fault.ts";

const LASTS_MS = 2_500;

type Wire = { readonly name: string; readonly of: (scene: FaultScene) => Line | undefined };

const database: Wire = { name: "database", of: ({ arena, victim }) => arena.databaseLines[victim] };
const upstream: Wire = { name: "upstream", of: ({ arena, victim }) => arena.upstreamLines[victim] };

function withConditions(line: Wire, what: string, conditions: Partial<NetworkConditions>, more: Partial<Fault> = {}): Fault {
  return {
    name: `${line.name}: ${what}`,
    strike: async (scene) => {
      line.of(scene)?.set(conditions);
      await wait(LASTS_MS);
      line.of(scene)?.set({});
    },
    ...more,
  };
}

/** Resets connections repeatedly, and half of the time new ones too. */
function cuts(line: Wire): Fault {
  return {
    name: `${line.name}: connections reset`,
    strike: async (scene) => {
      const { random } = scene;
      const until = performance.now() + LASTS_MS;
      while (performance.now() < until) {
        line.of(scene)?.cut();
        line.of(scene)?.set({ refuses: random.chance(0.5) });
        await wait(50 + random.below(400));
      }
      line.of(scene)?.set({});
    },
  };
}

/** The database commits but its reply is lost, so the server must find out the outcome. */
const lostReplies: Fault = {
  name: "database: replies lost after COMMIT",
  strike: async (scene) => {
    const proxy = database.of(scene);
    for (let i = 0; i < 4; i++) {
      proxy?.set({ holdsBack: true });
      await wait(300 + scene.random.below(300));
      proxy?.cut();
      proxy?.set({});
      await wait(200);
    }
  },
};

export const databaseNetwork: readonly Fault[] = [
  withConditions(database, "60 ms more each way", { latencyMs: 60 }, { isHarmless: true }),
  withConditions(database, "one byte at a time", { sliceBytes: 1 }, { isHarmless: true }),
  withConditions(database, "half-open", { swallows: true }),
  cuts(database),
  lostReplies,
];

export const upstreamNetwork: readonly Fault[] = [
  withConditions(upstream, "200 ms more each way", { latencyMs: 200 }, { isHarmless: true }),
  withConditions(upstream, "one byte at a time", { sliceBytes: 1 }, { isHarmless: true }),
  withConditions(upstream, "half-open", { swallows: true }),
  cuts(upstream),
];
