import { join } from "node:path";
import { copyBinaries } from "./binary-copy.ts";
import { type BinaryPackage, findBinaryPackage, makeLibraryLinks } from "./binary-package.ts";
import { EmbeddedPostgresError, unless } from "./error.ts";
import type { Placement } from "./placement.ts";
import { lastLines, type Outcome, runProgram } from "./run-program.ts";

export type Binaries = { readonly postgres: string; readonly initdb: string; readonly major: string };

/** Binaries that the server user can run: those of the package if possible, otherwise a copy. */
export async function prepareBinaries(
  place: Placement,
  print: (line: string) => void,
  from?: BinaryPackage,
): Promise<Binaries> {
  const found = from ?? (await findBinaryPackage());
  const linked = await unless(
    ["EACCES", "EPERM", "EROFS"],
    makeLibraryLinks(found.root).then(() => true),
  );
  if (linked === true) {
    const version = await tryVersion(found.root, place);
    if (version.ok) return binariesIn(found.root, version);
    // The failure does not depend on the user, so a copy would not run either.
    if (!place.user.switched) throw doesNotRun(version);
  }
  // Either the server user cannot reach the folder, or links cannot be created in it.
  const folder = linked === true ? place.systemHome : place.home;
  const why = reason(linked === true, found.root, place);
  const root = await copyBinaries(found, folder, (copy) => {
    print(`the PostgreSQL binaries were copied to ${copy}, because ${why}`);
  });
  const version = await tryVersion(root, place);
  if (!version.ok) throw doesNotRun(version);
  return binariesIn(root, version);
}

function reason(isClosed: boolean, root: string, place: Placement): string {
  return isClosed ? `uid ${place.user.uid} cannot reach ${root}` : `${root} cannot be written to`;
}

function tryVersion(root: string, place: Placement): Promise<Outcome> {
  return runProgram(place.user, join(root, "native", "bin", "postgres"), ["-V"]);
}

export function doesNotRun(outcome: Outcome): EmbeddedPostgresError {
  // The kernel reports a missing loader as a missing program.
  const why = outcome.output.includes("ENOENT") ? "it needs glibc" : lastLines(outcome.output, 2);
  return new EmbeddedPostgresError(
    `the embedded PostgreSQL does not run on this machine (${why}): set DATABASE_URL to a PostgreSQL of your own`,
  );
}

function binariesIn(root: string, version: Outcome): Binaries {
  const major = /(\d+)\./.exec(version.output)?.[1];
  if (major === undefined) throw new EmbeddedPostgresError(`not a PostgreSQL version: ${version.output}`);
  const folder = join(root, "native", "bin");
  return { postgres: join(folder, "postgres"), initdb: join(folder, "initdb"), major };
}
