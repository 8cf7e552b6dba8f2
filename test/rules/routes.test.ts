import { readdirSync } from "node:fs";
import { type DescMethod, type DescService, getOption, hasOption } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { http } from "../../gen/google/api/annotations_pb.js";
import type { HttpRule } from "../../gen/google/api/http_pb.js";
import { Access, policy, selected_by, selected_by_header } from "../../gen/vx/options/v1/options_pb.js";
import { accountPageService } from "../../src/members/service.ts";
import { memberPolicyOf, policyOf } from "../../src/rules/policy.ts";
import { developerServices, operatorServices } from "../../src/server/services.ts";

const GEN = new URL("../../gen/", import.meta.url);

/** Every service of this repository's .proto files, served or not. */
async function describedServices(): Promise<DescService[]> {
  const files = readdirSync(new URL("vx/", GEN), { recursive: true, encoding: "utf8" });
  const modules = await Promise.all(
    files.filter((file) => file.endsWith("_pb.js")).map((file) => import(new URL(`vx/${file}`, GEN).href)),
  );
  return modules
    .flatMap((module) => Object.values(module))
    .filter((value): value is DescService => (value as { kind?: string }).kind === "service")
    .sort((a, b) => (a.typeName < b.typeName ? -1 : 1));
}

test("RPCs, REST routes, scopes, limits and rights of members match routes.golden.txt", async () => {
  const rows = (await describedServices()).flatMap(({ methods }) => methods.map(rowOf));
  const header = ["rpc", "REST", "access", "scope or role", "limited", "metered", "suspended", "member"];
  await expect(
    `${table([header, ...rows])}\n`,
    "The outside of the product has changed. If that is meant, run: npx vitest run test/rules -u",
  ).toMatchFileSnapshot("./routes.golden.txt");
});

test("every service is served, operator services on the operator listener", async () => {
  const memberServices = [accountPageService.service];
  const served = [...developerServices, ...operatorServices, ...memberServices].map(({ typeName }) => typeName);
  expect((await describedServices()).map(({ typeName }) => typeName)).toEqual(served.sort());
  const access = (services: readonly DescService[]) => [
    ...new Set(services.flatMap(({ methods }) => methods.map((method) => policyOf(method).access))),
  ];
  expect(access(developerServices)).toEqual(["developer"]);
  expect(access(operatorServices)).toEqual(["operator"]);
  const ofMembers = memberServices.flatMap(({ methods }) => methods);
  expect(ofMembers.filter((method) => hasAccess(method) || !memberPolicyOf(method))).toEqual([]);
});

/** Whether other callers than members may call the method. */
const hasAccess = (method: DescMethod) => getOption(method, policy).access !== Access.UNSPECIFIED;

function rowOf(method: DescMethod): string[] {
  const stream = method.methodKind === "unary" ? "" : " (stream)";
  return [
    `${method.parent.typeName}.${method.name}${stream}`,
    routesOf(method),
    ...(hasAccess(method) ? requirementsOf(method) : Array(5).fill("-")),
    memberRequirementsOf(method),
  ];
}

function requirementsOf(method: DescMethod): string[] {
  const { access, scope, role, rateLimited, metered, whileSuspended } = policyOf(method);
  return [
    access,
    scope ?? role ?? "-",
    rateLimited ? "limited" : "-",
    metered ? "metered" : "-",
    whileSuspended ? "while suspended" : "-",
  ];
}

function memberRequirementsOf(method: DescMethod): string {
  const member = memberPolicyOf(method);
  if (!member) return "-";
  const { memberRole, whileSuspended, logged } = member;
  return [memberRole, ...(whileSuspended ? ["while suspended"] : []), ...(logged ? ["logged"] : [])].join(", ");
}

function routesOf(method: DescMethod): string {
  if (!hasOption(method, http)) return "-";
  const rule = getOption(method, http);
  const routes = [rule, ...rule.additionalBindings].map(routeOf).join(", ");
  if (hasOption(method, selected_by_header)) return `${routes} with ${getOption(method, selected_by_header)}`;
  return hasOption(method, selected_by) ? `${routes} if ${getOption(method, selected_by)}` : routes;
}

function routeOf({ pattern }: HttpRule): string {
  if (pattern.case === "custom") return `${pattern.value.kind} ${pattern.value.path}`;
  return `${pattern.case?.toUpperCase()} ${pattern.value}`;
}

function table(rows: readonly string[][]): string {
  const widths = rows[0]?.map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0))) ?? [];
  return rows
    .map((row) =>
      row
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
