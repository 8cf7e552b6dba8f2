import { resolve } from "node:path";
import { z } from "zod";
import { databaseUrlProblem } from "../../database/driver/endpoints.ts";
import type { Model } from "../../domain/model.ts";
import { type Micros, parseAmount } from "../../domain/money.ts";
import { AddressRanges, isLoopbackHost, readRange } from "../../domain/network.ts";
import { nearestOf } from "../../domain/text.ts";
import type { Product } from "../../server/pages/site-header.ts";
import { LOG_LEVELS, type Log } from "../../telemetry/log.ts";
import { ConfigError } from "../start-error.ts";
import { paymentSettings } from "./payments.ts";
import { linkProblem, nameProblem, readLogo } from "./product.ts";
import { domainsOf, domainsProblem, issuerProblem, signInSettings } from "./sign-in.ts";
import { readTelemetrySettings } from "./telemetry.ts";
import { TlsFiles } from "./tls.ts";

/** All settings, read once at start. */
export type Config = ReturnType<typeof readConfig>;

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
const path = text.transform((file) => resolve(file));
export const TOKEN = /^[!-~]{16,512}$/;
const token = z.string().regex(TOKEN, "must have 16 to 512 visible ASCII characters");
const checkedBy = (problemOf: (value: string) => string | undefined) => (value: string, context: z.RefinementCtx) => {
  const problem = problemOf(value);
  if (problem !== undefined) context.addIssue({ code: "custom", message: problem });
};
const origin = z
  .string()
  .superRefine(checkedBy(originProblem))
  .transform((url) => new URL(url).origin);
const ranges = z.string().superRefine(checkedBy(rangesProblem)).transform(rangesOf);
const secret = (prefix: RegExp, form: string) =>
  z.string().regex(new RegExp(`^${prefix.source}[!-~]{1,500}$`), `must begin with ${form}`);
const MAX_TOP_UP_MICROS = 1_000_000_000_000_000n;
const topUpAmount = z
  .string()
  .refine((amount) => isTopUpAmount(parseAmount(amount)), {
    error: (issue) => `must be an amount above 0 of at most 1000000000${not(issue)}`,
  })
  .transform((amount) => parseAmount(amount) as Micros);
const creditAmount = z
  .string()
  .refine((amount) => amount === "0" || isTopUpAmount(parseAmount(amount)), {
    error: (issue) => `must be an amount of at most 1000000000${not(issue)}`,
  })
  .transform((amount) => (amount === "0" ? 0n : (parseAmount(amount) as Micros)));
const SIGN_UP_MODES = ["closed", "invite", "open"] as const;
const flag = z.enum(["0", "1"], { error: (issue) => `must be 0 or 1${not(issue)}` }).transform((value) => value === "1");

/** scheme://host[:port]. Schemes other than http and https are those of web views and browser extensions. */
const ORIGIN = /^[a-z][a-z\d+.-]*:\/\/(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i;

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
  VX_ADMIN_TOKEN_FILE: path.optional(),
  VX_LEAK_KEYS_FILE: path.optional(),
  VX_METRICS_TOKEN: token.optional(),
  VX_DATA_DIR: path.prefault(".vx"),
  VX_MODELS: path.optional(),
  VX_CELLS: path.optional(),
  VX_DATABASE_WAIT: count(0, 86_400).default(60),
  VX_TLS_CERT: text.optional(),
  VX_TLS_KEY: text.optional(),
  VX_ADMIN_TLS_CERT: text.optional(),
  VX_ADMIN_TLS_KEY: text.optional(),
  VX_ADMIN_URL: origin.optional(),
  VX_OIDC_ISSUER: z.string().superRefine(checkedBy(issuerProblem)).optional(),
  VX_OIDC_CLIENT_ID: text.optional(),
  VX_OIDC_CLIENT_SECRET: text.optional(),
  VX_CUSTOMER_OIDC_ISSUER: z.string().superRefine(checkedBy(issuerProblem)).optional(),
  VX_CUSTOMER_OIDC_CLIENT_ID: text.optional(),
  VX_CUSTOMER_OIDC_CLIENT_SECRET: text.optional(),
  VX_SIGN_UP: z
    .enum(SIGN_UP_MODES, { error: (issue) => `must be one of ${SIGN_UP_MODES.join(", ")}${not(issue)}` })
    .default("closed"),
  VX_SIGN_UP_PLAN: text.default("free"),
  VX_SIGN_UP_CREDIT: creditAmount.default(0n),
  VX_SIGN_UP_CREDIT_DAYS: count(1, 3_650).optional(),
  VX_SIGN_UP_DOMAINS: z.string().superRefine(checkedBy(domainsProblem)).transform(domainsOf).default([]),
  VX_WORKERS: count(1, 64).default(1),
  VX_LOG_LEVEL: z.enum(LOG_LEVELS, { error: (issue) => `must be one of ${LOG_LEVELS.join(", ")}${not(issue)}` }).default("info"),
  VX_SEED_DEMO: flag.optional(),
  VX_MAX_BODY_BYTES: count(1_024, 1_073_741_824).default(33_554_432),
  VX_AUTH_FAILURES_PER_MINUTE: count(0, 1_000_000_000).default(6_000),
  VX_MAX_CONNECTIONS_PER_ADDRESS: count(0, 1_000_000).default(2_000),
  VX_ADMISSION_PIPELINES: count(1, 64).default(8),
  VX_BILLING_PIPELINES: count(1, 64).default(8),
  VX_DATABASE_CONNECTIONS: count(1, 1_000).default(8),
  VX_CORS_ORIGINS: z.string().superRefine(checkedBy(originsProblem)).transform(originsOf).default([]),
  VX_TRUSTED_PROXIES: ranges.optional(),
  VX_SHUTDOWN_DELAY: count(0, 3_600).default(0),
  VX_PRODUCT_NAME: z.string().superRefine(checkedBy(nameProblem)).default("vx"),
  VX_PRODUCT_LOGO: text.optional(),
  VX_TOP_UP_URL: z.string().superRefine(checkedBy(linkProblem)).optional(),
  VX_PUBLIC_URL: origin.optional(),
  VX_CURRENCY: z
    .string()
    .refine((code) => Intl.supportedValuesOf("currency").includes(code), {
      error: (issue) => `must be a code of ISO 4217 such as EUR${not(issue)}`,
    })
    .default("USD"),
  VX_STRIPE_SECRET_KEY: secret(/(?:sk|rk)_/, "sk_ or rk_").optional(),
  VX_STRIPE_WEBHOOK_SECRET: secret(/whsec_/, "whsec_").optional(),
  VX_STRIPE_API: origin.optional(),
  VX_STRIPE_INVOICES: z.enum(["on", "off"]).default("off"),
  VX_TOP_UP_MIN: topUpAmount.default(5_000_000n),
  VX_TOP_UP_MAX: topUpAmount.default(1_000_000_000n),
  VX_EVENTS_DAYS: count(1, 3_650).default(30),
  VX_FAILURES_DAYS: count(1, 3_650).default(7),
  VX_AUDIT_HOURS: count(0, 8_760).default(0),
  VX_WEBHOOK_ALLOWED_CIDRS: ranges.optional(),
  VX_WEBHOOK_CUSTOMER_CIDRS: ranges.optional(),
  VX_SUPPORT_URL: z.string().superRefine(checkedBy(linkProblem)).optional(),
});

export const SETTINGS: readonly string[] = Object.keys(schema.shape);

/** Reads the settings from the environment; an empty value counts as unset. */
export function readConfig(env: NodeJS.ProcessEnv) {
  const set = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ""));
  const parsed = schema.safeParse(set);
  if (!parsed.success) {
    throw new ConfigError(parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`).join("\n"));
  }
  const values = parsed.data;
  const sizes = {
    workers: values.VX_WORKERS,
    databaseConnections: values.VX_DATABASE_CONNECTIONS,
    admissionPipelines: values.VX_ADMISSION_PIPELINES,
    billingPipelines: values.VX_BILLING_PIPELINES,
  };
  const isEmbedded = values.DATABASE_URL === undefined && values.VX_CELLS === undefined;
  checkCombinations(values, isEmbedded ? embeddedConnections(sizes) : 0);
  const publicUrl = publicUrlOf(values);
  const payments = paymentSettings(env, values);
  return Object.freeze({
    databaseUrl: values.DATABASE_URL,
    /** Undefined for one cell. */
    cellsFile: values.VX_CELLS,
    /** How long the start waits for a database that does not respond. */
    databaseWaitMs: values.VX_DATABASE_WAIT * 1_000,
    host: values.VX_HOST,
    port: values.PORT,
    adminHost: values.VX_ADMIN_HOST,
    adminPort: values.VX_ADMIN_PORT,
    adminToken: values.VX_ADMIN_TOKEN,
    adminTokenFile: values.VX_ADMIN_TOKEN_FILE,
    leakKeysFile: values.VX_LEAK_KEYS_FILE,
    /** A token that may only read /metrics. */
    metricsToken: values.VX_METRICS_TOKEN,
    dataDir: values.VX_DATA_DIR,
    /** Undefined for the built-in models. */
    modelsFile: values.VX_MODELS,
    tls: TlsFiles.of("VX_TLS_CERT", values.VX_TLS_CERT, "VX_TLS_KEY", values.VX_TLS_KEY),
    adminTls: TlsFiles.of("VX_ADMIN_TLS_CERT", values.VX_ADMIN_TLS_CERT, "VX_ADMIN_TLS_KEY", values.VX_ADMIN_TLS_KEY),
    /** Where browsers reach the operator listener; undefined if they use its own address. */
    adminUrl: values.VX_ADMIN_URL,
    ...signInSettings(values),
    ...sizes,
    logLevel: values.VX_LOG_LEVEL,
    seedDemo: values.VX_SEED_DEMO ?? isEmbedded,
    ...demoSettings(values, isEmbedded, publicUrl, env),
    maxBodyBytes: values.VX_MAX_BODY_BYTES,
    authFailuresPerMinute: values.VX_AUTH_FAILURES_PER_MINUTE,
    maxConnectionsPerAddress: values.VX_MAX_CONNECTIONS_PER_ADDRESS,
    /** The proxies whose headers about the address of the caller count. */
    trustedProxies: values.VX_TRUSTED_PROXIES,
    corsOrigins: values.VX_CORS_ORIGINS,
    /** Time between a stop signal and the drain. */
    shutdownDelayMs: values.VX_SHUTDOWN_DELAY * 1_000,
    telemetry: readTelemetrySettings(env),
    /** Where customers add credit; the customer page if the server takes payments. */
    topUpUrl: values.VX_TOP_UP_URL ?? (payments && `${publicUrl}/account`),
    publicUrl,
    isPublicUrlSet: values.VX_PUBLIC_URL !== undefined,
    payments,
    eventsDays: values.VX_EVENTS_DAYS,
    failuresDays: values.VX_FAILURES_DAYS,
    auditHours: values.VX_AUDIT_HOURS,
    operatorWebhookRanges: values.VX_WEBHOOK_ALLOWED_CIDRS,
    customerWebhookRanges: values.VX_WEBHOOK_CUSTOMER_CIDRS,
    currency: values.VX_CURRENCY,
    product: productOf(values, payments !== undefined),
  });
}

/** The sign-in of the owner of the demo account exists only where just callers of this machine reach the server, for trials. */
function demoSettings(values: z.infer<typeof schema>, isEmbedded: boolean, publicUrl: string, env: NodeJS.ProcessEnv) {
  const hosts = [values.VX_HOST, new URL(publicUrl).hostname];
  const isTrial = values.VX_TRUSTED_PROXIES === undefined && env.NODE_ENV !== "production";
  return {
    allowsDemoOwner: isEmbedded && isTrial && hosts.every(isLoopbackHost),
    /** The least and the most that the payments of this owner can be, which are simulated. */
    simulatedAmounts: { minMicros: values.VX_TOP_UP_MIN, maxMicros: values.VX_TOP_UP_MAX },
  };
}

/** @param connections those that the embedded database must allow */
function checkCombinations(values: z.infer<typeof schema>, connections: number): void {
  if (values.VX_CELLS !== undefined && values.DATABASE_URL !== undefined)
    throw new ConfigError("VX_CELLS, DATABASE_URL: set one of them; VX_CELLS names the databases of all cells");
  if (values.VX_CELLS !== undefined && values.VX_SEED_DEMO === true)
    throw new ConfigError("VX_SEED_DEMO: must not be 1 with VX_CELLS");
  if (connections > MAX_EMBEDDED_CONNECTIONS) {
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
    throw new ConfigError(`PORT, VX_ADMIN_PORT: both listeners would use port ${values.PORT}; set one of them to another port`);
  }
}

function publicUrlOf(values: z.infer<typeof schema>): string {
  const { VX_PUBLIC_URL: url, VX_HOST: host, PORT, VX_TLS_CERT } = values;
  const scheme = VX_TLS_CERT === undefined ? "http" : "https";
  return url ?? `${scheme}://${host.includes(":") ? `[${host}]` : host}:${PORT}`;
}

function isTopUpAmount(micros: Micros | undefined): boolean {
  return micros !== undefined && micros > 0n && micros <= MAX_TOP_UP_MICROS;
}

/** Whether the two listeners would use the same port of the same address; port 0 is a free one for each. */
function isSamePort(values: z.infer<typeof schema>): boolean {
  const hosts = [values.VX_HOST, values.VX_ADMIN_HOST];
  const isSameHost = hosts[0] === hosts[1] || hosts.some((host) => host === "0.0.0.0" || host === "::");
  return values.PORT !== 0 && values.PORT === values.VX_ADMIN_PORT && isSameHost;
}

/** The settings that decide how many connections to PostgreSQL a server opens. */
type ConnectionSettings = {
  readonly workers: number;
  readonly databaseConnections: number;
  readonly admissionPipelines: number;
  readonly billingPipelines: number;
};

export function poolSizes(settings: Omit<ConnectionSettings, "workers">) {
  return {
    single: settings.databaseConnections,
    admission: settings.admissionPipelines,
    billing: settings.billingPipelines,
    // One each for the monitor, the heartbeats and the revocation watch.
    monitor: 3,
  };
}

/**
 * Reserved for the lock of the data folder, migrations, psql, the three connections that PostgreSQL keeps
 * for superusers, and abandoned connections whose backend still runs while they are replaced.
 */
const RESERVED_CONNECTIONS = 30;
/** Covers the usual settings, so that a small change of one needs no restart of the database. */
const MIN_EMBEDDED_CONNECTIONS = 100;
/** Each connection is a PostgreSQL process. */
const MAX_EMBEDDED_CONNECTIONS = 5_000;

/** The connections that an embedded PostgreSQL must allow. */
export function embeddedConnections(settings: ConnectionSettings): number {
  return Math.max(MIN_EMBEDDED_CONNECTIONS, serverConnections(settings) + RESERVED_CONNECTIONS);
}

export function serverConnections(settings: ConnectionSettings): number {
  const perProcess = Object.values(poolSizes(settings)).reduce((sum, size) => sum + size, 0);
  // With several workers, the process that starts them serves the operator API with pools of the same size.
  const processes = settings.workers === 1 ? 1 : settings.workers + 1;
  return processes * perProcess;
}

/** The error in a comma-separated list of origins; undefined if it is valid. */
function originsProblem(list: string): string | undefined {
  const wrong = itemsOf(list).find((item) => toOrigin(item) === undefined);
  if (wrong === undefined) return undefined;
  return (
    `${JSON.stringify(wrong)} is not an origin; list origins such as ` +
    "https://app.example.com,http://localhost:5173, without paths and without wildcards"
  );
}

/** The origins of a valid list, as browsers send them. */
function originsOf(list: string): readonly string[] {
  return itemsOf(list).flatMap((item) => toOrigin(item) ?? []);
}

function productOf(values: z.infer<typeof schema>, takesPayments: boolean): Product {
  return {
    takesPayments,
    hasSignIn: values.VX_CUSTOMER_OIDC_ISSUER !== undefined,
    signUp: values.VX_SIGN_UP,
    name: values.VX_PRODUCT_NAME,
    logo: readLogo("VX_PRODUCT_LOGO", values.VX_PRODUCT_LOGO),
    supportUrl: values.VX_SUPPORT_URL,
  };
}

function rangesProblem(list: string): string | undefined {
  for (const item of itemsOf(list)) {
    const read = readRange(item);
    if ("problem" in read) return `${JSON.stringify(item)} ${read.problem}`;
  }
  return undefined;
}

function rangesOf(list: string): AddressRanges {
  const ranges = itemsOf(list).map(readRange);
  return new AddressRanges(ranges.flatMap((read) => ("range" in read ? read.range : [])).join(","));
}

function itemsOf(list: string): string[] {
  return list.split(",").map((item) => item.trim());
}

/** Browsers send hosts in lower case, and no default port. */
function toOrigin(text: string): string | undefined {
  if (!ORIGIN.test(text)) return undefined;
  if (!/^https?:/i.test(text)) return text.toLowerCase();
  return URL.canParse(text) ? new URL(text).origin : undefined;
}

/** The problem of the URL of a listener; undefined if it is valid. */
function originProblem(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`) return undefined;
  return "must be a URL with host and port only, such as https://ops.example:8081";
}

/** Variables of the commands and of the documented clients. The server does not read them. */
const CLIENT_VARIABLES = ["VX_URL", "VX_KEY"];

/**
 * Warns instead of failing, because Kubernetes sets such variables for a Service called vx. Values are never
 * logged.
 */
export function warnOfUnknownSettings(env: NodeJS.ProcessEnv, models: readonly Model[], log: Log): void {
  const ofUpstreams = models.flatMap(({ upstreams }) =>
    upstreams.map((upstream) => ("apiKeyEnv" in upstream ? upstream.apiKeyEnv : undefined)),
  );
  const known = new Set<string | undefined>([...SETTINGS, ...CLIENT_VARIABLES, ...ofUpstreams]);
  for (const name of Object.keys(env)) {
    if (!name.startsWith("VX_") || known.has(name)) continue;
    const nearest = nearestSetting(name);
    log.warn({ variable: name, nearest }, `unknown setting ${name} is ignored; did you mean ${nearest}?`);
  }
}

/** Compares without the common prefix VX_. */
export function nearestSetting(name: string): string {
  const nearest = nearestOf(withoutPrefix(name), SETTINGS.map(withoutPrefix));
  return SETTINGS.find((setting) => withoutPrefix(setting) === nearest) as string;
}

function withoutPrefix(name: string): string {
  return name.replace(/^VX_/, "");
}
