import { resolve } from "node:path";
import { z } from "zod";
import type { Product } from "../server/pages/product.ts";
import type { OidcSettings } from "../server/sign-in/oidc-client.ts";
import { databaseUrlProblem } from "../store/driver/endpoints.ts";
import { LOG_LEVELS } from "../telemetry/log.ts";
import type { TelemetrySettings } from "../telemetry/telemetry.ts";
import { originsOf, originsProblem } from "./allowed-origins.ts";
import { ConfigError } from "./config-error.ts";
import {
  type ConnectionSettings,
  embeddedConnections,
  MAX_EMBEDDED_CONNECTIONS,
} from "./connection-limit.ts";
import { linkProblem, nameProblem, readLogo } from "./product-settings.ts";
import { adminUrlProblem, issuerProblem, oidcSettings } from "./sign-in-settings.ts";
import { readTelemetrySettings } from "./telemetry-settings.ts";
import { TlsFiles } from "./tls-files.ts";

/** All settings, read once at start. */
export type Config = ConnectionSettings & {
  readonly databaseUrl: string | undefined;
  /** Path of the file that lists the cells; undefined for one cell. */
  readonly cellsFile: string | undefined;
  /** How long the start waits for a database that does not answer. */
  readonly databaseWaitMs: number;
  readonly host: string;
  readonly port: number;
  readonly adminHost: string;
  readonly adminPort: number;
  readonly adminToken: string | undefined;
  /** Path of a file with one or two tokens, in place of `adminToken`. */
  readonly adminTokenFile: string | undefined;
  /** A token that may only read /metrics. */
  readonly metricsToken: string | undefined;
  readonly dataDir: string;
  /** Path of the models file; undefined for the built-in models. */
  readonly modelsFile: string | undefined;
  readonly tls: TlsFiles | undefined;
  readonly adminTls: TlsFiles | undefined;
  /** Where browsers reach the operator listener; undefined if they use its own address. */
  readonly adminUrl: string | undefined;
  readonly oidc: OidcSettings | undefined;
  readonly logLevel: (typeof LOG_LEVELS)[number];
  readonly seedDemo: boolean;
  readonly maxBodyBytes: number;
  readonly authFailuresPerMinute: number;
  readonly maxConnectionsPerAddress: number;
  /** The origins whose pages may call the public listener from a browser. */
  readonly corsOrigins: readonly string[];
  /** Time between a stop signal and the drain. */
  readonly shutdownDelayMs: number;
  readonly product: Product;
  /** Where customers add credit. */
  readonly topUpUrl: string | undefined;
  /** Undefined if OpenTelemetry is off. */
  readonly telemetry: TelemetrySettings | undefined;
};

const not = ({ input }: { readonly input?: unknown }) => `, not ${JSON.stringify(input)}`;
const count = (min: number, max: number) =>
  z
    .string()
    .refine((digits) => /^\d{1,10}$/.test(digits) && Number(digits) >= min && Number(digits) <= max, {
      error: (issue) => `must be a whole number from ${min} to ${max}${not(issue)}`,
    })
    .transform(Number);
const port = count(0, 65_535);
const text = z.string().min(1);
export const TOKEN = /^[!-~]{16,512}$/;
const token = z.string().regex(TOKEN, "must have 16 to 512 visible ASCII characters");
const checkedBy =
  (problemOf: (value: string) => string | undefined) => (value: string, context: z.RefinementCtx) => {
    const problem = problemOf(value);
    if (problem !== undefined) context.addIssue({ code: "custom", message: problem });
  };
const flag = z
  .enum(["0", "1"], { error: (issue) => `must be 0 or 1${not(issue)}` })
  .transform((value) => value === "1");

const schema = z.object({
  DATABASE_URL: z
    .string()
    .regex(/^postgres(ql)?:\/\//, "must start with postgres:// or postgresql://")
    .superRefine(checkedBy(databaseUrlProblem))
    .optional(),
  VX_HOST: text.default("127.0.0.1"),
  PORT: port.default(8080),
  VX_ADMIN_HOST: text.default("127.0.0.1"),
  VX_ADMIN_PORT: port.default(8081),
  VX_ADMIN_TOKEN: token.optional(),
  VX_ADMIN_TOKEN_FILE: text.optional(),
  VX_METRICS_TOKEN: token.optional(),
  VX_DATA_DIR: text.default(".vx"),
  VX_MODELS: text.optional(),
  VX_CELLS: text.optional(),
  VX_DATABASE_WAIT: count(0, 86_400).default(60),
  VX_TLS_CERT: text.optional(),
  VX_TLS_KEY: text.optional(),
  VX_ADMIN_TLS_CERT: text.optional(),
  VX_ADMIN_TLS_KEY: text.optional(),
  VX_ADMIN_URL: z
    .string()
    .superRefine(checkedBy(adminUrlProblem))
    .transform((url) => new URL(url).origin)
    .optional(),
  VX_OIDC_ISSUER: z.string().superRefine(checkedBy(issuerProblem)).optional(),
  VX_OIDC_CLIENT_ID: text.optional(),
  VX_OIDC_CLIENT_SECRET: text.optional(),
  VX_WORKERS: count(1, 64).default(1),
  VX_LOG_LEVEL: z
    .enum(LOG_LEVELS, { error: (issue) => `must be one of ${LOG_LEVELS.join(", ")}${not(issue)}` })
    .default("info"),
  VX_SEED_DEMO: flag.optional(),
  VX_MAX_BODY_BYTES: count(1_024, 1_073_741_824).default(33_554_432),
  VX_AUTH_FAILURES_PER_MINUTE: count(0, 1_000_000_000).default(6_000),
  VX_MAX_CONNECTIONS_PER_ADDRESS: count(0, 1_000_000).default(2_000),
  VX_ADMISSION_PIPELINES: count(1, 64).default(1),
  VX_BILLING_PIPELINES: count(1, 64).default(1),
  VX_DATABASE_CONNECTIONS: count(1, 1_000).default(8),
  VX_CORS_ORIGINS: z.string().superRefine(checkedBy(originsProblem)).transform(originsOf).default([]),
  VX_SHUTDOWN_DELAY: count(0, 3_600).default(0),
  VX_PRODUCT_NAME: z.string().superRefine(checkedBy(nameProblem)).default("vx"),
  VX_PRODUCT_LOGO: text.optional(),
  VX_TOP_UP_URL: z.string().superRefine(checkedBy(linkProblem)).optional(),
  VX_SUPPORT_URL: z.string().superRefine(checkedBy(linkProblem)).optional(),
});

/** The names of all settings. */
export const SETTINGS: readonly string[] = Object.keys(schema.shape);

/** Reads the settings from the environment; an empty value counts as unset. */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  const set = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ""));
  const parsed = schema.safeParse(set);
  if (!parsed.success) {
    throw new ConfigError(
      parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`).join("\n"),
    );
  }
  const values = parsed.data;
  const sizes = {
    workers: values.VX_WORKERS,
    databaseConnections: values.VX_DATABASE_CONNECTIONS,
    admissionPipelines: values.VX_ADMISSION_PIPELINES,
    billingPipelines: values.VX_BILLING_PIPELINES,
  };
  if (values.VX_CELLS !== undefined && values.DATABASE_URL !== undefined)
    throw new ConfigError(
      "VX_CELLS, DATABASE_URL: set one of them; VX_CELLS names the databases of all cells",
    );
  if (values.VX_CELLS !== undefined && values.VX_SEED_DEMO === true)
    throw new ConfigError("VX_SEED_DEMO: must not be 1 with VX_CELLS");
  const isEmbedded = values.DATABASE_URL === undefined && values.VX_CELLS === undefined;
  const connections = embeddedConnections(sizes);
  if (isEmbedded && connections > MAX_EMBEDDED_CONNECTIONS) {
    throw new ConfigError(
      `VX_WORKERS, VX_DATABASE_CONNECTIONS, VX_ADMISSION_PIPELINES, VX_BILLING_PIPELINES: need ${connections} connections in total, ` +
        `but the embedded database allows ${MAX_EMBEDDED_CONNECTIONS}; reduce one of them, or set DATABASE_URL`,
    );
  }
  if (values.VX_METRICS_TOKEN !== undefined && values.VX_METRICS_TOKEN === values.VX_ADMIN_TOKEN)
    throw new ConfigError("VX_METRICS_TOKEN: must not be the value of VX_ADMIN_TOKEN");
  if (values.VX_ADMIN_TOKEN !== undefined && values.VX_ADMIN_TOKEN_FILE !== undefined)
    throw new ConfigError("VX_ADMIN_TOKEN, VX_ADMIN_TOKEN_FILE: set one of them");
  if (isSamePort(values)) {
    throw new ConfigError(
      `PORT, VX_ADMIN_PORT: both listeners would use port ${values.PORT}; set one of them to another port`,
    );
  }
  return Object.freeze({
    databaseUrl: values.DATABASE_URL,
    cellsFile: values.VX_CELLS === undefined ? undefined : resolve(values.VX_CELLS),
    databaseWaitMs: values.VX_DATABASE_WAIT * 1_000,
    host: values.VX_HOST,
    port: values.PORT,
    adminHost: values.VX_ADMIN_HOST,
    adminPort: values.VX_ADMIN_PORT,
    adminToken: values.VX_ADMIN_TOKEN,
    adminTokenFile:
      values.VX_ADMIN_TOKEN_FILE === undefined ? undefined : resolve(values.VX_ADMIN_TOKEN_FILE),
    metricsToken: values.VX_METRICS_TOKEN,
    dataDir: resolve(values.VX_DATA_DIR),
    modelsFile: values.VX_MODELS === undefined ? undefined : resolve(values.VX_MODELS),
    tls: TlsFiles.of("VX_TLS_CERT", values.VX_TLS_CERT, "VX_TLS_KEY", values.VX_TLS_KEY),
    adminTls: TlsFiles.of(
      "VX_ADMIN_TLS_CERT",
      values.VX_ADMIN_TLS_CERT,
      "VX_ADMIN_TLS_KEY",
      values.VX_ADMIN_TLS_KEY,
    ),
    adminUrl: values.VX_ADMIN_URL,
    oidc: oidcSettings(values),
    ...sizes,
    logLevel: values.VX_LOG_LEVEL,
    seedDemo: values.VX_SEED_DEMO ?? isEmbedded,
    maxBodyBytes: values.VX_MAX_BODY_BYTES,
    authFailuresPerMinute: values.VX_AUTH_FAILURES_PER_MINUTE,
    maxConnectionsPerAddress: values.VX_MAX_CONNECTIONS_PER_ADDRESS,
    corsOrigins: values.VX_CORS_ORIGINS,
    shutdownDelayMs: values.VX_SHUTDOWN_DELAY * 1_000,
    telemetry: readTelemetrySettings(env),
    topUpUrl: values.VX_TOP_UP_URL,
    product: {
      name: values.VX_PRODUCT_NAME,
      logo: readLogo("VX_PRODUCT_LOGO", values.VX_PRODUCT_LOGO),
      supportUrl: values.VX_SUPPORT_URL,
    },
  });
}

/** Whether the two listeners would use the same port of the same address; port 0 is a free one for each. */
function isSamePort(values: z.infer<typeof schema>): boolean {
  const hosts = [values.VX_HOST, values.VX_ADMIN_HOST];
  const isSameHost = hosts[0] === hosts[1] || hosts.some((host) => host === "0.0.0.0" || host === "::");
  return values.PORT !== 0 && values.PORT === values.VX_ADMIN_PORT && isSameHost;
}
