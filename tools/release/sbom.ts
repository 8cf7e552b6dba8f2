import { execFileSync } from "node:child_process";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { packagesOfNotices } from "../notices.ts";

/** The parts of CycloneDX 1.5 that are read here. */
type Component = { readonly "bom-ref": string; readonly name: string };
type Sbom = {
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
};

/** The packages that the server's package installs, and those in the bundles of its pages. */
export function writeSbom(file: string, name: string): void {
  const all = npmSbom();
  const bundled = new Set(globSync("gen/*/licenses.txt").flatMap((path) => packagesOfNotices(readFileSync(path, "utf8"))));
  const installed = installedPackages();
  const components = all.components.filter(
    (component) => bundled.has(component.name) || (installed.has(component["bom-ref"]) && !isCopyOfNode(component)),
  );
  const refs = new Set(components.map((component) => component["bom-ref"]));
  const root = all.metadata.component;
  const dependencies = all.dependencies
    .filter(({ ref }) => refs.has(ref) || ref === root["bom-ref"])
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((other) => refs.has(other)) }));
  // What a bundle contains of the code of other bundles has no entry in package-lock.json, and no version.
  const names = new Set(components.map((component) => component.name));
  const copied = [...bundled].filter((one) => !names.has(one)).map((one) => ({ type: "library", name: one }));
  const metadata = {
    ...all.metadata,
    component: { ...root, name, properties: [], purl: root["bom-ref"].replace(/^vx@/, `pkg:npm/${name}@`) },
  };
  const sbom = { ...all, metadata, components: [...components, ...copied], dependencies };
  writeFileSync(file, `${JSON.stringify(sbom, undefined, 2)}\n`);
}

/** The server's package leaves them out: they would replace the Node of the user. */
function isCopyOfNode({ name }: Component): boolean {
  return /^node-(bin-)?(linux|darwin)-/.test(name);
}

function npmSbom(): Sbom {
  const args = ["sbom", "--package-lock-only", "--sbom-format", "cyclonedx"];
  return JSON.parse(execFileSync("npm", args, { encoding: "utf8", maxBuffer: 1 << 28 }));
}

/** As references of an SBOM. `npm sbom --omit dev` leaves out those that tools need too. */
function installedPackages(): ReadonlySet<string> {
  const { packages } = JSON.parse(readFileSync("package-lock.json", "utf8"));
  const entries = Object.entries<{ version: string; dev?: boolean }>(packages).filter(([, { dev }]) => !dev);
  return new Set(entries.map(([path, { version }]) => `${path.split("node_modules/").at(-1)}@${version}`));
}
