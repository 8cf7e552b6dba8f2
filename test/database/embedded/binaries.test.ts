import { chmod, lstat, mkdir, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { copyBinaries, findBinaryPackage, makeLibraryLinks } from "../../../src/database/embedded/binaries.ts";
import { runProgram } from "../../../src/database/embedded/run-program.ts";
import { serverUser, unprivilegedUser } from "../../../src/database/embedded/server-user.ts";
import { cleanUp, makeFolder, patient } from "./support.ts";

afterEach(cleanUp);

async function copyInto(folder: string): Promise<{ root: string; copied: boolean }> {
  let copied = false;
  const root = await copyBinaries(await findBinaryPackage(), folder, () => {
    copied = true;
  });
  return { root, copied };
}

async function runs(root: string): Promise<boolean> {
  return (await runProgram(serverUser(undefined, await unprivilegedUser()), join(root, "native", "bin", "postgres"), ["-V"])).ok;
}

describe("PostgreSQL binaries", patient, () => {
  test("missing library links are created", async () => {
    const { root } = await copyInto(await makeFolder());
    const folder = join(root, "native", "lib");
    const links: string[] = [];
    for (const name of await readdir(folder)) {
      if ((await lstat(join(folder, name))).isSymbolicLink()) links.push(name);
    }
    expect(links.length).toBeGreaterThan(0);
    for (const name of links) await rm(join(folder, name));
    await makeLibraryLinks(root);
    for (const name of links) expect((await stat(join(folder, name))).isFile()).toBe(true);
    expect(await runs(root)).toBe(true);
  });

  test("a copy runs, and a second start reuses it", async () => {
    const folder = await makeFolder();
    const { root, copied } = await copyInto(folder);
    expect(copied).toBe(true);
    expect(await runs(root)).toBe(true);
    expect(await copyInto(folder)).toEqual({ root, copied: false });
  });

  test("concurrent starts make one copy and remove the incomplete copy of a killed start", async () => {
    const folder = await makeFolder();
    const { version } = await findBinaryPackage();
    await mkdir(join(folder, `binaries-${version}.new-${process.pid}-abcdef`, "native"), { recursive: true });
    const copies = await Promise.all([copyInto(folder), copyInto(folder), copyInto(folder)]);
    expect(new Set(copies.map(({ root }) => root)).size).toBe(1);
    expect(copies.filter(({ copied }) => copied)).toHaveLength(1);
    expect(await readdir(folder)).toEqual([`binaries-${version}`]);
    expect(await runs(copies[0].root)).toBe(true);
  });

  test.skipIf(process.getuid?.() === 0)(
    "creating links in a read-only package fails with EACCES (skipped for root)",
    async () => {
      const { root } = await copyInto(await makeFolder());
      const folder = join(root, "native", "lib");
      for (const name of await readdir(folder)) {
        if ((await lstat(join(folder, name))).isSymbolicLink()) await rm(join(folder, name));
      }
      await chmod(folder, 0o555);
      await expect(makeLibraryLinks(root)).rejects.toMatchObject({ code: "EACCES" });
      await chmod(folder, 0o755);
    },
  );
});
