import { readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { Ajv } from "ajv";
import { afterAll, describe, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { SETTINGS } from "../../src/app/settings/config.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { lint, prepareHelm, render, validate } from "./helm.ts";

const KUBERNETES = ["1.31", "1.34", "1.37"];
/** Their schemas are not those of Kubernetes. */
const CUSTOM_KINDS = ["ServiceMonitor", "PrometheusRule", "HTTPRoute"];
const VALUES = ["minimal", "full", "tls", "cells"] as const;

type Container = {
  readonly args?: readonly string[];
  readonly env: readonly { readonly name: string; readonly value?: string; readonly valueFrom?: object }[];
  readonly securityContext: object;
  readonly volumeMounts: readonly object[];
};
type PodSpec = {
  readonly enableServiceLinks: boolean;
  readonly terminationGracePeriodSeconds: number;
  readonly containers: readonly [Container];
  readonly volumes: readonly { readonly name: string; readonly secret?: { readonly secretName: string } }[];
  readonly securityContext: object;
};
type Template = { readonly template?: { readonly spec: PodSpec } };
type Manifest = {
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec: PodSpec & Template & { readonly jobTemplate?: { readonly spec: Template } };
};

const folder = createTemporaryFolder("chart");
const problem = prepareHelm(process.env.VX_TEST_SHORT === "1");
if (problem !== undefined) console.warn(`SKIPPED: the chart is not rendered: ${problem}`);

afterAll(() => folder.remove());

const fileOf = (values: string) => `test/chart/values/${values}.yaml`;

test("the values of the chart match their schema, and a misspelt one does not", () => {
  const matches = new Ajv({ allowUnionTypes: true }).compile(
    JSON.parse(readFileSync("deploy/helm/vx/values.schema.json", "utf8")),
  );
  const values = parse(readFileSync("deploy/helm/vx/values.yaml", "utf8"));
  expect(matches(values) || matches.errors).toBe(true);
  for (const name of VALUES) expect(matches(parse(readFileSync(fileOf(name), "utf8"))) || matches.errors).toBe(true);
  expect(matches({ ...values, replica: 3 })).toBe(false);
  expect(matches({ settings: { VX_ADMIN_TOKEN: "a secret in the values" } })).toBe(false);
});

describe.skipIf(problem !== undefined)("the chart", () => {
  test.each(VALUES)("with %s values passes helm lint and the schemas of three versions of Kubernetes", (values) => {
    expect(lint(fileOf(values))).toMatchObject({ status: 0 });
    const all = manifestsOf(values);
    expect(all.length).toBeGreaterThan(5);
    const own = all.filter(({ kind }) => !CUSTOM_KINDS.includes(kind));
    const file = join(folder.path, `${values}.yaml`);
    writeFileSync(file, own.map((manifest) => JSON.stringify(manifest)).join("\n---\n"));
    for (const version of KUBERNETES) expect(validate(file, version)).toMatchObject({ status: 0 });
  });

  test("is refused without the repository of an image", () => {
    const file = join(folder.path, "empty.yaml");
    writeFileSync(file, "{}\n");
    expect(render(file)).toMatchObject({ status: 1, output: expect.stringContaining("image.repository is required") });
  });

  test("the schemas refuse a field that does not exist", () => {
    const file = join(folder.path, "wrong.yaml");
    const [wrong] = manifestsOf("minimal").filter(({ kind }) => kind === "Deployment");
    writeFileSync(file, JSON.stringify({ ...wrong, spec: { ...wrong?.spec, replica: 2 } }));
    expect(validate(file, "1.34").status).not.toBe(0);
  });

  test.each(VALUES)("with %s values has the usual labels, and restricts every pod", (values) => {
    const all = manifestsOf(values);
    for (const { metadata } of all) {
      expect(metadata.labels).toMatchObject({
        "app.kubernetes.io/name": "vx",
        "app.kubernetes.io/instance": "vx",
        "app.kubernetes.io/managed-by": "Helm",
      });
      expect(metadata.labels["helm.sh/chart"]).toMatch(/^vx-\d/);
    }
    const pods = all.flatMap(podOf);
    expect(pods.length).toBe({ minimal: 3, full: 3, tls: 2, cells: 4 }[values]);
    for (const pod of pods) {
      expect(pod.enableServiceLinks).toBe(false);
      expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } });
      expect(pod.containers[0].securityContext).toMatchObject({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      });
    }
  });

  test("only the migration has the login of the owner, and no manifest has a secret", () => {
    const all = manifestsOf("full");
    const withOwner = all.filter((manifest) => JSON.stringify(manifest).includes("vx-database-owner"));
    expect(withOwner.map(({ kind, spec }) => [kind, spec.template?.spec.containers[0].args])).toEqual([
      ["Job", ["vx", "migrate"]],
    ]);
    expect(withOwner[0]?.metadata.annotations?.["helm.sh/hook"]).toBe("pre-install,pre-upgrade");
    expect(all.map(({ kind }) => kind)).not.toContain("Secret");
    const secrets = ["DATABASE_URL", "VX_ADMIN_TOKEN", "VX_METRICS_TOKEN"];
    const given = all.flatMap(podOf).flatMap(({ containers }) => containers[0].env);
    expect(given.filter(({ name, value }) => secrets.includes(name) && value !== undefined)).toEqual([]);
  });

  test("with cells, servers get one cells.yaml, and the jobs of the owner another", () => {
    const pods = manifestsOf("cells")
      .flatMap(podOf)
      .filter(({ volumes }) => volumes.some(({ name }) => name === "cells"));
    const secretOf = ({ volumes }: PodSpec) => volumes.find(({ name }) => name === "cells")?.secret?.secretName;
    const byArgs = pods.map((pod) => [pod.containers[0].args?.slice(0, 2).join(" "), secretOf(pod)]);
    expect(Object.fromEntries(byArgs)).toEqual({
      undefined: "vx-cells",
      "vx migrate": "vx-cells-owner",
      "vx archive": "vx-cells-owner",
    });
    for (const { containers } of pods) {
      const names = containers[0].env.map(({ name }) => name);
      expect(names).toContain("VX_CELLS");
      expect(names).not.toContain("DATABASE_URL");
    }
  });

  test("the server trusts the proxies that the values name, and reads keys for leak reports from a ConfigMap", () => {
    const serverOf = (values: (typeof VALUES)[number]) =>
      manifestsOf(values).find(({ kind }) => kind === "Deployment")?.spec.template?.spec;
    const spec = serverOf("full");
    const file = "/etc/vx/leak-keys/leak-keys.json";
    expect(spec?.containers[0].env).toEqual(
      expect.arrayContaining([
        { name: "VX_TRUSTED_PROXIES", value: "10.0.0.0/8,fd00::1" },
        { name: "VX_LEAK_KEYS_FILE", value: file },
      ]),
    );
    expect(spec?.volumes).toContainEqual({
      name: "leak-keys",
      configMap: { name: "scanners", items: [{ key: "keys.json", path: basename(file) }] },
    });
    expect(spec?.containers[0].volumeMounts).toContainEqual({ name: "leak-keys", mountPath: dirname(file), readOnly: true });
    expect(JSON.stringify(serverOf("minimal"))).not.toMatch(/TRUSTED_PROXIES|leak-keys/i);
  });

  test("a pod may stop for as long as the server needs, after the delay", () => {
    const [server] = manifestsOf("full").filter(({ kind }) => kind === "Deployment");
    const spec = server?.spec.template?.spec;
    expect(spec?.containers[0].env).toContainEqual({ name: "VX_SHUTDOWN_DELAY", value: "25" });
    expect(spec?.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(25 + 140);
  });

  test("the server gets only settings that exist", () => {
    const given = VALUES.flatMap(manifestsOf)
      .flatMap(podOf)
      .flatMap(({ containers }) => containers[0].env);
    const names = new Set(given.map(({ name }) => name).filter((name) => name.startsWith("VX_")));
    expect([...names].filter((name) => !SETTINGS.includes(name))).toEqual([]);
    expect(names.size).toBeGreaterThan(10);
  });

  test("helm test audits the ledger through the operator listener", () => {
    const [pod] = manifestsOf("tls").filter(({ metadata }) => metadata.annotations?.["helm.sh/hook"] === "test");
    expect(pod?.spec.containers[0].args).toEqual(["vx", "audit"]);
    expect(pod?.spec.containers[0].env).toContainEqual({ name: "VX_ADMIN_URL", value: "https://vx-operator:8081" });
  });

  test("Prometheus reads the metrics with the token that can do nothing else", () => {
    const [monitor] = manifestsOf("full").filter(({ kind }) => kind === "ServiceMonitor");
    expect(monitor?.spec).toMatchObject({
      endpoints: [{ authorization: { credentials: { name: "vx-operator", key: "VX_METRICS_TOKEN" } } }],
    });
  });

  test.each([
    "replica=3",
    "settings.DATABASE_URL=postgres://a",
    "shutdownDelaySeconds=-1",
    "cells.secretName=a",
    "trustedProxies={proxy.example}",
    "settings.VX_TRUSTED_PROXIES=10.0.0.1",
  ])("%s is refused", (wrong) =>
    expect(render(fileOf("minimal"), "--set", wrong).output).toContain("values don't meet the specifications"),
  );
});

function manifestsOf(values: (typeof VALUES)[number]): Manifest[] {
  const { status, output } = render(fileOf(values));
  expect({ status, output: status === 0 ? "" : output }).toEqual({ status: 0, output: "" });
  return parseAllDocuments(output)
    .map((document) => document.toJS() as Manifest)
    .filter(Boolean);
}

function podOf({ kind, spec }: Manifest): PodSpec[] {
  if (kind === "Pod") return [spec];
  const template = spec?.template ?? spec?.jobTemplate?.spec.template;
  return template ? [template.spec] : [];
}
