import { expect, test } from "vitest";
import { AuditSchedule } from "../../src/audit/schedule.ts";
import { type AuditReport, audit, claimAudit, lastAudit, recordAudit } from "../../src/audit/store.ts";
import { useOwnStore } from "../support/store.ts";

const store = useOwnStore();
const log = { info: () => undefined, error: () => undefined } as never;

test("one of several servers begins each scheduled audit", async () => {
  const claim = () => claimAudit(store.database, 24);
  const claims = await Promise.all([claim(), claim(), claim()]);
  expect(claims.filter((isDue) => isDue)).toHaveLength(1);
  expect(await claim()).toBe(false);
  await store.owner`UPDATE vx.audit_state SET claimed_at = claimed_at - interval '24 hours'`;
  expect(await claim()).toBe(true);
});

test("the last complete audit is kept with its start, duration and result", async () => {
  expect(await lastAudit(store.database)).toMatchObject({ started_at: null, seconds: null });
  const report = await audit(store.database, new AbortController().signal);
  await recordAudit(store.database, report);
  const last = await lastAudit(store.database);
  expect(last).toMatchObject({ started_at: report.startedAt, entries: 0n, findings: 0 });
  expect(last?.seconds).toBeGreaterThanOrEqual(0);
  expect(last?.seconds).toBeLessThan(60);
  // An audit that began earlier and ended later does not replace it.
  await recordAudit(store.database, { ...report, startedAt: new Date(0), entries: 7n });
  expect((await lastAudit(store.database))?.entries).toBe(0n);
});

test("a server audits when it is due, and stops in the middle of an audit", async () => {
  await store.owner`UPDATE vx.audit_state SET claimed_at = '-infinity'`;
  const schedule = await new Promise<AuditSchedule>((resolve) => {
    const started = new AuditSchedule({
      database: store.database,
      hours: 1,
      log,
      onAudit: async (report: AuditReport) => {
        expect(report.findings).toEqual([]);
        resolve(started);
      },
    });
    started.start();
  });
  await schedule.stop();
  expect(await claimAudit(store.database, 1)).toBe(false);

  await store.owner`UPDATE vx.audit_state SET claimed_at = '-infinity'`;
  const reports: AuditReport[] = [];
  const onAudit = async (report: AuditReport) => void reports.push(report);
  const stopped = new AuditSchedule({ database: store.database, hours: 1, log, onAudit });
  stopped.start();
  await stopped.stop();
  expect(reports).toEqual([]);
});
