import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { OPERATOR_TOKEN } from "../support/app.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { operatorOf } from "../support/fixtures.ts";
import { createPaidKey } from "../support/openai.ts";
import { type ServerProcess, startServerProcess } from "../support/process.ts";
import { bearer } from "../support/protocols.ts";
import { problemOf } from "../support/python.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

const METRICS_TOKEN = "metrics-token-of-the-tests";
const TIMEOUT_MS = 120_000;

const problem = problemOf("promtool", "--version") ?? problemOf("prometheus", "--version");
if (problem !== undefined)
  console.error(`SKIPPED: neither the alert rules nor the dashboard were tested. Install Prometheus. ${problem}`);

type Panel = { readonly title: string; readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[] };
type Variable = { readonly name: string; readonly type: string; readonly query: string | { query: string } };
// No package of Grafana's server was found on npm, on PyPI, in Go's module proxy or in Debian. So the queries, the labels in
// the legends and the variables are tested on a real Prometheus, and the JSON in dashboard-model.test.ts.
const dashboard = JSON.parse(readFileSync("deploy/grafana/vx.json", "utf8")) as {
  readonly id: unknown;
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly Variable[] };
};
const QUERIES = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr, legendFormat }) => ({
    title,
    query: withVariables(expr),
    labels: [...legendFormat.matchAll(/{{(\w+)}}/g)].map(([, label = ""]) => label),
  })),
);

/** Grafana's own values for "All", and an interval for a Prometheus that scrapes once a second. */
function withVariables(text: string): string {
  return text.replaceAll("$__rate_interval", "10s").replaceAll("$job", ".*").replaceAll("$instance", ".*");
}

const RULE_TESTS = ["deploy/prometheus/rules.test.yaml", "deploy/prometheus/rules-slow.test.yaml"];

describe.skipIf(problem !== undefined)("the alert rules", () => {
  test("are valid and pass their tests", () => {
    expect(problemOf("promtool", "check", "rules", "deploy/prometheus/rules.yaml")).toBeUndefined();
    expect(problemOf("promtool", "test", "rules", ...RULE_TESTS)).toBeUndefined();
  });

  test("each have a test and a section in docs/alerts.md", () => {
    const names = [...readFileSync("deploy/prometheus/rules.yaml", "utf8").matchAll(/- alert: (\w+)/g)];
    const tests = RULE_TESTS.map((file) => readFileSync(file, "utf8")).join("\n");
    const documentation = readFileSync("docs/alerts.md", "utf8");
    expect(names.length).toBeGreaterThan(10);
    for (const [, name = ""] of names) {
      expect(tests).toContain(`runbook: docs/alerts.md#${name.toLowerCase()}`);
      expect(documentation).toContain(`## ${name}\n`);
    }
  });
});

describe.skipIf(problem !== undefined)("the configuration of Prometheus", () => {
  const folder = createTemporaryFolder("prometheus-config");
  afterAll(() => folder.remove());

  test.each([
    ["deploy/compose/prometheus.yml", /^([\s\S]*)$/],
    ["docs/observability.md", /cat > prometheus\.yml <<END\n([\s\S]*?) {4}END\n/],
  ])("in %s is valid", (document, pattern) => {
    const config = pattern.exec(readFileSync(document, "utf8"))?.[1] ?? "";
    expect(config).toContain("scrape_configs:");
    const file = join(folder.path, "prometheus.yml");
    const token = join(folder.path, "token");
    writeFileSync(token, METRICS_TOKEN);
    const check = (text: string) => {
      const here = text
        .replace(/[\w/]*\/rules\.yaml/, join(process.cwd(), "deploy/prometheus/rules.yaml"))
        .replace("/run/secrets/metrics_token", token);
      writeFileSync(file, here);
      return problemOf("promtool", "check", "config", file);
    };
    expect(check(config)).toBeUndefined();
    expect(check(config.replace("static_configs", "static_config"))).toContain("static_config");
  });
});

describe.skipIf(problem !== undefined)("a Prometheus that scrapes a server", { timeout: TIMEOUT_MS }, () => {
  const folder = createTemporaryFolder("prometheus");
  let database: TestDatabase;
  let server: ServerProcess;
  let prometheus: ReturnType<typeof spawn>;
  let address: string;
  let isLoading = true;
  let load: Promise<void>;

  beforeAll(async () => {
    database = await createTestDatabase();
    server = startServerProcess({
      DATABASE_URL: database.url,
      VX_ADMIN_TOKEN: OPERATOR_TOKEN,
      VX_METRICS_TOKEN: METRICS_TOKEN,
      VX_DATA_DIR: folder.path,
      VX_SEED_DEMO: "0",
      VX_WORKERS: "2",
    });
    const url = await server.line(/^vx ready on (\S+)$/m);
    const adminUrl = server.adminUrl();
    const operator = operatorOf({ adminUrl } as never);
    const key = await createPaidKey(operator);
    await operator.audit({});
    load = loadServer(url, key.secret);
    address = await startPrometheus(new URL(adminUrl).host);
  }, TIMEOUT_MS);
  afterAll(async () => {
    isLoading = false;
    await load;
    prometheus.kill();
    await server.end("SIGTERM");
    await database.drop();
    folder.remove();
  });

  /** Calls that succeed, and calls that are refused, until the tests end. */
  async function loadServer(url: string, secret: string): Promise<void> {
    const headers = { ...bearer(secret), "content-type": "application/json" };
    for (let i = 0; isLoading; i++) {
      // Leaves CPU time for Prometheus.
      await wait(20);
      const model = i % 10 === 0 ? "unknown" : "vx-sandbox-small";
      const body = JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }], max_tokens: 200 });
      await (await fetch(`${url}/v1/generate`, { method: "POST", headers, body })).text();
    }
  }

  async function startPrometheus(target: string): Promise<string> {
    const config = {
      global: { scrape_interval: "1s", evaluation_interval: "1s" },
      rule_files: [join(process.cwd(), "deploy/prometheus/rules.yaml")],
      scrape_configs: [
        { job_name: "vx", authorization: { credentials: METRICS_TOKEN }, static_configs: [{ targets: [target] }] },
      ],
    };
    const file = join(folder.path, "prometheus.yml");
    writeFileSync(file, JSON.stringify(config));
    const child = spawn("prometheus", [
      `--config.file=${file}`,
      `--storage.tsdb.path=${join(folder.path, "data")}`,
      "--web.listen-address=127.0.0.1:0",
    ]);
    prometheus = child;
    let log = "";
    child.stderr.on("data", (chunk: Buffer) => {
      log += chunk.toString();
    });
    const port = () => /Listening on"? address=127\.0\.0\.1:(\d+)/.exec(log)?.[1];
    await vi.waitFor(() => expect(port()).toBeDefined());
    return `http://127.0.0.1:${port()}`;
  }

  async function read<Data>(path: string): Promise<Data> {
    const { status, data, error } = (await (await fetch(`${address}/api/v1/${path}`)).json()) as {
      readonly status: string;
      readonly data: Data;
      readonly error?: string;
    };
    expect([path, status, error]).toEqual([path, "success", undefined]);
    return data;
  }

  type Series = { readonly metric: Readonly<Record<string, string>>; readonly value: [number, string] };

  async function seriesOf(query: string): Promise<readonly Series[]> {
    const { result } = await read<{ result: Series[] }>(`query?query=${encodeURIComponent(query)}`);
    return result.filter(({ value }) => value[1] !== "NaN");
  }

  test("answers all queries of the dashboard, with the labels of their legends", async () => {
    const failures = async () => {
      const answers = QUERIES.map(async (query) => ({ ...query, series: await seriesOf(query.query) }));
      return (await Promise.all(answers)).filter(
        ({ series, labels }) => series.length === 0 || !series.every(({ metric }) => labels.every((label) => metric[label])),
      );
    };
    await vi.waitFor(async () => expect(await failures()).toEqual([]), { timeout: 60_000, interval: 1_000 });
  });

  test("answers the queries of the variables of the dashboard", async () => {
    const values = dashboard.templating.list.flatMap(({ name, query }) => {
      const found = typeof query === "string" ? null : /^label_values\((.+), (\w+)\)$/.exec(withVariables(query.query));
      return found === null ? [] : [{ name, metric: found[1] ?? "", label: found[2] ?? "" }];
    });
    expect(values.map(({ name }) => name)).toEqual(["job", "instance"]);
    for (const { metric, label } of values)
      expect(await read(`label/${label}/values?match[]=${encodeURIComponent(metric)}`)).toHaveLength(1);
  });

  test("evaluates all rules, and no alert fires", async () => {
    type Rule = { readonly name: string; readonly health: string; readonly state?: string };
    const rules = async () => (await read<{ groups: { rules: Rule[] }[] }>("rules")).groups.flatMap((group) => group.rules);
    await vi.waitFor(async () => {
      for (const rule of await rules()) expect(rule).toMatchObject({ health: "ok" });
    });
    expect((await rules()).filter(({ state = "inactive" }) => state !== "inactive")).toEqual([]);
  });
});

test("the dashboard can be provisioned: no id, a variable for the data source, no inputs", () => {
  expect(dashboard.id).toBeNull();
  expect(dashboard).not.toHaveProperty("__inputs");
  expect(dashboard.templating.list).toContainEqual(expect.objectContaining({ name: "datasource", type: "datasource" }));
  expect(QUERIES.length).toBeGreaterThan(30);
});
