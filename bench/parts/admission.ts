// Batched admission directly against the store, compared with one statement per call to the same function.
import { NEAR, openAdmission } from "../admission-load.ts";
import { type Load, runCallers } from "../load.ts";
import type { Part } from "../part.ts";
import { openStore } from "../store.ts";

type AdmitModule = typeof import("../../src/keys/admit.ts");

const CALLERS = 256;
const KEYS = 1_000;
const SECONDS = 2;

export const admission: Part<{ batched: Load; hot: Load; single: Load }> = {
  rounds: 5,
  warmUpRounds: 1,
  open: async (checkout, cleanup) => {
    const { admit, keys, dataDir } = await openAdmission(checkout, cleanup, KEYS);
    const pool = await openStore(checkout, cleanup, { dataDir, connections: 16 });
    const { Admitter } = await checkout.load<AdmitModule>("src/keys/admit.ts");
    // One batcher per caller, so each call is a batch of its own.
    const admitters = Array.from({ length: CALLERS }, () => new Admitter(pool, { pipelines: 1, maxWaiting: 1, clocks: [NEAR] }));
    const single = (caller: number, at: number) =>
      admitters[caller]?.admit({
        ...(keys[at] as (typeof keys)[number]),
        scope: "read",
        address: "127.0.0.1",
        limited: true,
        whileSuspended: false,
      });
    const anyKey = () => Math.floor(Math.random() * KEYS);
    return {
      batched: () => runCallers(CALLERS, SECONDS, () => admit(anyKey())),
      hot: () => runCallers(CALLERS, SECONDS, () => admit(0)),
      single: () => runCallers(CALLERS, SECONDS, (caller) => Promise.resolve(single(caller, anyKey()))),
    };
  },
  figures: [
    { name: `admission, ${CALLERS} callers, ${KEYS} keys`, unit: "/s", value: (r) => r.batched.perSecond },
    { name: `admission, ${CALLERS} callers, one key`, unit: "/s", value: (r) => r.hot.perSecond },
    { name: "one statement per call, 16 connections", unit: "/s", value: (r) => r.single.perSecond },
    { name: "batched / one statement per call", unit: "×", min: 3, value: (r) => r.batched.perSecond / r.single.perSecond },
  ],
};
