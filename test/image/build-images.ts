import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { CLIENTS } from "../support/installed.ts";
import { problemOf } from "../support/python.ts";

const FOLDER = join(CLIENTS, "image");
const STORAGE = ["--root", join(FOLDER, "storage"), "--runroot", join(FOLDER, "run")];
const BASE = "localhost/vx-test-base";
const AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt";

export type Image = {
  /** A mounted root file system. */
  readonly root: string;
  readonly compressedBytes: number;
  readonly config: {
    readonly User: string;
    readonly Env: readonly string[];
    readonly Entrypoint: readonly string[];
    readonly Cmd: readonly string[];
    readonly Healthcheck: { readonly Test: readonly string[] };
    readonly Labels: Readonly<Record<string, string>>;
  };
};

/** Why the images cannot be built here. */
export function missingTools(): string | undefined {
  if (process.getuid?.() !== 0) return "building needs root";
  return problemOf("buildah", "--version") ?? problemOf("debootstrap", "--version") ?? problemOf("unshare", "-V");
}

/** Builds both images on a minimal Debian, without a daemon. */
export function buildImages(): { readonly vx: Image; readonly postgres: Image } {
  mkdirSync(FOLDER, { recursive: true });
  makeBase();
  return { vx: build("vx"), postgres: build("vx-postgres") };
}

/** Kept, as are the layers of the images. */
function makeBase(): void {
  const folder = join(FOLDER, "debian");
  if (!existsSync(folder)) {
    const unfinished = `${folder}.part`;
    rmSync(unfinished, { recursive: true, force: true });
    run("debootstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", unfinished);
    // The build downloads packages, and a network may have its own certificate authority.
    if (existsSync(AUTHORITIES)) copyFileSync(AUTHORITIES, join(unfinished, AUTHORITIES));
    for (const path of globSync("/usr/local/share/ca-certificates/*.crt"))
      copyFileSync(path, join(unfinished, "usr/local/share/ca-certificates", basename(path)));
    renameSync(unfinished, folder);
  }
  if (problemOf("buildah", ...STORAGE, "inspect", "--type", "image", BASE) === undefined) return;
  const container = buildah("from", "scratch");
  buildah("add", "--quiet", container, folder, "/");
  buildah("commit", "--quiet", container, BASE);
  buildah("rm", container);
}

function build(target: string): Image {
  const name = `localhost/${target}`;
  const args = ["--build-arg", `BASE=${BASE}`, "--build-arg", "VERSION=1.2.3", "--build-arg", "REVISION=abc"];
  buildah(
    ...["build", "--quiet", "--layers", "--format", "docker", "--isolation", "chroot", "--network", "host"],
    ...[...args, "--target", target, "--tag", name, "--file", "deploy/Dockerfile", "."],
  );
  const { Docker } = JSON.parse(buildah("inspect", "--type", "image", name));
  return { root: buildah("mount", buildah("from", name)), compressedBytes: sizeOf(name), config: Docker.config };
}

/** The size of the compressed layers, as a registry stores them. */
function sizeOf(name: string): number {
  const folder = mkdtempSync(join(tmpdir(), "vx-image-"));
  try {
    buildah("push", "--quiet", name, `dir:${folder}`);
    const { layers } = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8"));
    return layers.reduce((sum: number, { size }: { size: number }) => sum + size, 0);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Unmounts and removes all containers of the tests. */
export function removeContainers(): void {
  buildah("rm", "--all");
}

function buildah(...args: string[]): string {
  return run("buildah", ...STORAGE, ...args).trim();
}

function run(command: string, ...args: string[]): string {
  return execFileSync(command, args, {
    encoding: "utf8",
    cwd: resolve("."),
    maxBuffer: 1 << 28,
    stdio: ["ignore", "pipe", "pipe"],
  });
}
