import { existsSync } from "node:fs";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { cleanUp, eventually, killOwner, launchOwner, makeFolder, patient, postmasterPid, query, start } from "./support.ts";

afterEach(cleanUp);

async function unfinished(dataDir: string): Promise<string[]> {
  return (await readdir(dataDir)).filter((name) => name.includes(".new-"));
}

describe("concurrent and interrupted starts", patient, () => {
  test("concurrent servers on an empty folder share one database", async () => {
    const dataDir = await makeFolder();
    const owners = await Promise.all([1, 2].map(() => launchOwner(dataDir).ready));
    expect(owners.map((owner) => owner.report.error)).toEqual([undefined, undefined]);
    expect(owners.filter((owner) => !owner.report.adopted)).toHaveLength(1);

    const server = await start(dataDir);
    expect(server.adopted).toBe(true);
    expect(await query(server, "select 1 as one")).toEqual([{ one: 1 }]);
    expect(await unfinished(dataDir)).toEqual([]);
  });

  test("a first start that is killed leaves no incomplete database, and concurrent starts in one process then share a new one", async () => {
    const dataDir = await makeFolder();
    const owner = launchOwner(dataDir);
    owner.ready.catch(() => undefined);
    const isHalfWay = async () => {
      const [folder] = (await unfinished(dataDir)).filter((name) => name.startsWith("postgres"));
      return folder !== undefined && existsSync(join(dataDir, folder, "base"));
    };
    await eventually(isHalfWay);
    await killOwner(owner.process);
    expect(existsSync(join(dataDir, "postgres"))).toBe(false);

    // A leftover whose pid is in use again.
    const leftover = join(dataDir, `postgres.new-${process.pid}-abcdef`);
    await mkdir(leftover);
    await writeFile(join(leftover, "PG_VERSION"), "18\n");
    const [one, other] = await Promise.all([start(dataDir), start(dataDir)]);
    expect(one.said).toHaveLength(1);
    expect(await postmasterPid(one)).toBe(await postmasterPid(other));
    expect(await query(one, "select 1 as one")).toEqual([{ one: 1 }]);
    await one.stop();
    await start(dataDir);
    expect(await unfinished(dataDir)).toEqual([]);
  });
});
