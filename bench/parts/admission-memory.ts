// Memory of the store, in this process, after many admissions.
import { openAdmission } from "../admission-load.ts";
import type { Part } from "../part.ts";
import { residentMib } from "../program.ts";

const CALLERS = 512;
const ADMISSIONS = 10_000_000;

type Memory = { perSecond: number; halfwayMib: number; afterMib: number };

/**
 * Compares the memory after half of the admissions, when the heap has grown to its working size, with the
 * memory at the end.
 */
export const admissionMemory: Part<{ admissions: Memory }> = {
  rounds: 1,
  warmUpRounds: 0,
  open: async (checkout, cleanup) => {
    const { admit } = await openAdmission(checkout, cleanup, 1);
    return {
      admissions: async () => {
        const startedAt = performance.now();
        await admitOften(admit, ADMISSIONS / 2);
        const halfwayMib = residentAfterCollection();
        await admitOften(admit, ADMISSIONS / 2);
        const perSecond = (ADMISSIONS / (performance.now() - startedAt)) * 1000;
        return { perSecond, halfwayMib, afterMib: residentAfterCollection() };
      },
    };
  },
  figures: [
    { name: `${ADMISSIONS.toLocaleString("en")} admissions`, unit: "/s", value: (r) => r.admissions.perSecond },
    { name: "  resident memory after half of them", unit: "MiB", value: (r) => r.admissions.halfwayMib },
    { name: "  resident memory after all", unit: "MiB", value: (r) => r.admissions.afterMib },
    { name: "  growth", unit: "×", max: 1.2, value: (r) => r.admissions.afterMib / r.admissions.halfwayMib },
  ],
};

async function admitOften(admit: (key: number) => Promise<void>, count: number): Promise<void> {
  let remaining = count;
  await Promise.all(
    Array.from({ length: CALLERS }, async () => {
      while (remaining-- > 0) await admit(0);
    }),
  );
}

function residentAfterCollection(): number {
  globalThis.gc?.();
  return residentMib(process.pid);
}
