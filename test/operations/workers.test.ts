import { expect, test, vi } from "vitest";
import { bearer } from "../support/protocols.ts";
import { getMe, ready, start, useDataFolder, workersOf } from "./server-process.ts";

useDataFolder({ withDatabase: true });

test("several workers share the port, and the metrics include all of them", async () => {
  const server = start({ VX_WORKERS: "2", VX_ADMIN_TOKEN: "operator-token-of-the-tests" });
  const secret = await server.line(/(vx_live_\w+)/);
  const url = await server.line(ready);
  for (let i = 0; i < 20; i++) expect(await getMe(url, secret)).toMatchObject({ status: 200 });
  const admin = /"admin":"([^"]+)"/.exec(server.stderr())?.[1];
  const text = await (
    await fetch(`${admin}/metrics`, { headers: bearer("operator-token-of-the-tests") })
  ).text();
  expect(text).toContain('vx_calls_total{rpc="vx.v1.MeService/GetMe",protocol="connect",code="ok"} 20');
  expect(await server.end("SIGTERM")).toBe(0);
});

test("the counters of a worker are kept after it exits", async () => {
  const server = start({ VX_WORKERS: "2", VX_ADMIN_TOKEN: "operator-token-of-the-tests" });
  const secret = await server.line(/(vx_live_\w+)/);
  const url = await server.line(ready);
  const admin = /"admin":"([^"]+)"/.exec(server.stderr())?.[1];
  const headers = bearer("operator-token-of-the-tests");
  const read = async () => await (await fetch(`${admin}/metrics`, { headers })).text();
  const counted = 'vx_calls_total{rpc="vx.v1.MeService/GetMe",protocol="connect",code="ok"}';
  for (let i = 0; i < 20; i++) expect(await getMe(url, secret)).toMatchObject({ status: 200 });
  expect(await read()).toContain(`${counted} 20`);
  const pids = workersOf(server.child.pid as number);
  expect(pids).toHaveLength(2);
  process.kill(pids[0] as number, "SIGKILL");
  expect(await read()).toContain(`${counted} 20`);
  await vi.waitFor(async () => expect(await getMe(url, secret)).toMatchObject({ status: 200 }), {
    timeout: 10_000,
  });
  const text = await read();
  expect(text).toContain(`${counted} 21`);
  // Gauges of exited processes are removed.
  expect(text).toContain("vx_running_calls 0");
});
