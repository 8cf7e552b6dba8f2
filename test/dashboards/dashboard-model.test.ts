import { spawnSync } from "node:child_process";
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, expect, test } from "vitest";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

/** The types of Grafana's package for dashboards, with the texts of a JSON file in place of enums. */
const TYPES = `
import type { Dashboard, FieldConfig, Panel, RowPanel, VariableModel } from "@grafana/schema";
import type * as Stat from "@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen";
import type * as Series from "@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen";

type Json<T> = T extends string ? \`\${T}\` : T extends object ? { [Name in keyof T]: Json<T[Name]> } : T;
type DataSource = { type: "prometheus"; uid: "\${datasource}" };
type Target = { refId: string; datasource: DataSource; expr: string; legendFormat: string };
type PanelOf<Type, Options, Custom> = Omit<Json<Panel>, "type" | "options" | "targets" | "datasource" | "fieldConfig"> & {
  type: Type;
  options: Json<Options>;
  datasource: DataSource;
  targets: Target[];
  fieldConfig: { defaults: Omit<Json<FieldConfig>, "custom"> & { custom?: Json<Custom> }; overrides: [] };
};
type AnyPanel =
  | RowPanel
  | PanelOf<"stat", Stat.Options, never>
  | PanelOf<"timeseries", Series.Options, Series.FieldConfig>;
type Variable = Omit<Json<VariableModel>, "datasource" | "hide" | "refresh" | "sort"> &
  Pick<VariableModel, "hide" | "refresh" | "sort"> & { datasource?: DataSource };
export type Model = Omit<Dashboard, "id" | "panels" | "templating"> & {
  id: null;
  panels: AnyPanel[];
  templating: { list: Variable[] };
};
`;

const folder = createTemporaryFolder("dashboard");
afterAll(() => folder.remove());
symlinkSync(resolve("node_modules"), join(folder.path, "node_modules"));
writeFileSync(join(folder.path, "model.ts"), TYPES);

/** What TypeScript reports about a dashboard. */
function errorsOf(dashboard: string): string {
  const source = `import type { Model } from "./model.js";\nexport const dashboard: Model = ${dashboard};\n`;
  writeFileSync(join(folder.path, "dashboard.ts"), source);
  const options = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--skipLibCheck"];
  const { stdout, error } = spawnSync("tsc", [...options, "--moduleResolution", "bundler", "dashboard.ts"], {
    cwd: folder.path,
    encoding: "utf8",
  });
  if (error) throw error;
  return stdout;
}

const DASHBOARD = readFileSync("deploy/grafana/vx.json", "utf8");

test("the dashboard has the types of @grafana/schema", () => {
  expect(errorsOf(DASHBOARD)).toBe("");
});

test.each([
  ['"schemaVersion": 39', '"schemaVersion": "39"'],
  ['"editable": true', '"editible": true'],
  ['"placement": "bottom"', '"placement": "below"'],
  ['"graphMode": "area"', '"graphmode": "area"'],
  ['"mode": "normal"', '"mode": "stacked"'],
  ['"fillOpacity": 30', '"fillOpacity": "30"'],
  ['"legendFormat": "calls"', '"legend": "calls"'],
])("a dashboard with %s replaced by %s does not", (found, replacement) => {
  const changed = DASHBOARD.replace(found, replacement);
  expect(changed).not.toBe(DASHBOARD);
  expect(errorsOf(changed)).toMatch(/^dashboard\.ts\(\d+,\d+\): error TS/);
});
