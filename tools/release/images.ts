import { execFileSync, spawnSync } from "node:child_process";
import { join } from "node:path";

/** Programs that build images, by how each writes one to a file. */
const BUILDERS: Readonly<Record<string, (image: string, file: string) => string[]>> = {
  docker: (image, file) => ["save", "--output", file, image],
  podman: (image, file) => ["save", "--output", file, image],
  buildah: (image, file) => ["push", "--quiet", image, `docker-archive:${file}:${image}`],
};

export type ImageLabels = { readonly version: string; readonly revision: string; readonly created: string };

/** Writes the images for this machine's processor. Without a builder, prints that they are missing. */
export function writeImages(folder: string, { version, revision, created }: ImageLabels): void {
  // `docker info` fails without its daemon.
  const builder = Object.keys(BUILDERS).find((name) => spawnSync(name, ["info"]).status === 0);
  if (builder === undefined) {
    console.error(`SKIPPED: no images, because none of ${Object.keys(BUILDERS).join(", ")} works here`);
    return;
  }
  for (const target of ["vx", "vx-postgres"]) {
    const image = `localhost/${target}:${version}`;
    const labels = { VERSION: version, REVISION: revision, CREATED: created };
    const args = Object.entries(labels).flatMap(([name, value]) => ["--build-arg", `${name}=${value}`]);
    const build = ["build", "--file", "deploy/Dockerfile", "--target", target, "--tag", image, ...args, "."];
    const file = join(folder, `${target}-${version}-${process.arch}.tar`);
    for (const step of [build, BUILDERS[builder]?.(image, file) ?? []])
      execFileSync(builder, step, { stdio: ["ignore", "ignore", "inherit"] });
  }
}
