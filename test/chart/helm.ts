import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { CLIENTS } from "../support/installed.ts";
import { createVenv, problemOf } from "../support/python.ts";

const HELM = "helm.sh/helm/v3/cmd/helm@v3.19.2";
const FOLDER = resolve(CLIENTS, "helm");
const VENV = resolve(CLIENTS, "kubernetes");
const CHART = "deploy/helm/vx";

export type Outcome = { readonly status: number | null; readonly output: string };

/** Builds Helm and installs the schemas of Kubernetes. Returns the reason if that fails. */
export function prepareHelm(isShort: boolean): string | undefined {
  if (!existsSync(join(FOLDER, "helm"))) {
    if (isShort) return "Helm takes minutes to build; npm run test:extra -- chart builds it";
    mkdirSync(FOLDER, { recursive: true });
    const problem = problemOf("env", `GOBIN=${FOLDER}`, "go", "install", HELM);
    if (problem !== undefined) return problem;
  }
  return createVenv(VENV, "test/chart/requirements.txt");
}

export function lint(values: string): Outcome {
  return run(join(FOLDER, "helm"), "lint", "--strict", "--kube-version", "1.34.0", "--values", values, CHART);
}

/** The manifests of a release called vx in the namespace api. */
export function render(values: string, ...options: string[]): Outcome {
  const place = ["--namespace", "api", "--kube-version", "1.34.0", "--values", values];
  return run(join(FOLDER, "helm"), "template", "vx", CHART, ...place, ...options);
}

/** Compares manifests with the OpenAPI schemas of a version of Kubernetes; unknown fields are errors. */
export function validate(file: string, version: string): Outcome {
  return run(join(VENV, "bin/kubernetes-validate"), "--strict", "--kubernetes-version", version, file);
}

function run(command: string, ...args: string[]): Outcome {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: "utf8" });
  return { status, output: status === 0 ? stdout : stdout + stderr };
}
