import { resolve } from "node:path";
import type { Command } from "commander";
import { describe, expect, test } from "vitest";
import { createProgram } from "../../src/cli/program.ts";
import { unusedPort } from "../support/unused-port.ts";
import { spawnVx, vx, words } from "./support.ts";

/** All commands with a path of words, such as "accounts create". */
function commandsOf(command: Command, path: readonly string[] = []): { path: string; isLeaf: boolean }[] {
  const own = { path: path.join(" "), isLeaf: command.commands.length === 0 };
  return [own, ...command.commands.flatMap((child) => commandsOf(child, [...path, child.name()]))];
}
const commands = commandsOf(await createProgram(["completion"])).filter(({ path }) => !/^help$/.test(path));

const help = (command: string) => vx([...command.split(" "), "--help"].filter(Boolean));
const WRAPPED = /\n {10,}/g;

describe("help", () => {
  test("of every command that calls something has an example and --json", async () => {
    expect(commands.length).toBeGreaterThan(70);
    for (const { path, isLeaf } of commands) {
      const { code, stdout, stderr } = await help(path);
      expect({ path, code, stderr }).toEqual({ path, code: 0, stderr: "" });
      const hasExample = isLeaf || /^(accounts|keys|plans|models|ledger|operators)?$/.test(path);
      const json = isLeaf ? "[^]*--json" : "";
      expect(stdout).toMatch(new RegExp(`^Usage: vx ${path}${json}${hasExample ? `[^]*Examples?:\\n.*vx ${path}` : ""}`));
    }
  });

  test("has examples that the command accepts", async () => {
    const env = { VX_ADMIN_TOKEN: "a-token-of-some-length", VX_ADMIN_PORT: String(await unusedPort()) };
    const own = /^(serve|migrate|doctor|payments|cells|backup|archive|copy-database|completion|audit)\b/;
    const refused: string[] = [];
    let examples = 0;
    for (const { path } of commands.filter((command) => command.isLeaf && !own.test(command.path))) {
      for (const [, line = ""] of (await help(path)).stdout.matchAll(/^ {2}vx (.*)$/gm)) {
        // The shell reads redirections and quotes.
        const { code, stderr } = await vx(words(line.replace(/ [<>] .*/, "").replaceAll('"', "'")), env);
        if (code === 2 && !stderr.includes("not a complete key")) refused.push(`${line}: ${stderr}`);
        examples++;
      }
    }
    expect({ examples: examples > 60, refused }).toEqual({ examples: true, refused: [] });
  });

  test.for([
    ["accounts create", ["--name <name>"]],
    ["accounts credit", ["--reason <text>"]],
    ["accounts adjust", ["--reason <text>"]],
    ["accounts suspend", ["--reason <text>"]],
    ["accounts resume", []],
    ["keys create", ["--account <account>", "--name <name>"]],
    ["keys revoke", []],
    ["plans set", ["--rpm <n>", "--max-active-keys <n>"]],
    ["operators create", ["--name <name>", "--role <role>"]],
    ["cells split", ["--to <url>", "--lanes <lanes>"]],
    ["copy-database", ["--to <url>"]],
  ] as const)("of 'vx %s' marks the required options %j", async ([command, required]) => {
    const { stdout } = await help(command);
    const options = stdout.replaceAll(WRAPPED, " ").match(/^ {2}--.*\(required.*$/gm) ?? [];
    expect(options.map((line) => line.trim().split(/ {2,}/)[0]).sort()).toEqual([...required].sort());
  });

  test("of every command with a reason describes it in the same way", async () => {
    const texts = new Set<string>();
    let commandsWithReason = 0;
    for (const { path } of commands.filter(({ isLeaf }) => isLeaf)) {
      const { stdout } = await help(path);
      const reason = /^ {2}--reason <text> +([^-]*?)(?: \(required\))?$/m.exec(stdout.replaceAll(WRAPPED, " "))?.[1];
      if (reason === undefined) continue;
      commandsWithReason++;
      texts.add(reason);
    }
    expect(commandsWithReason).toBeGreaterThan(15);
    expect([...texts]).toEqual([expect.stringMatching(/^why the change is made, /)]);
  });

  test("without a command is printed as wrong usage", async () => {
    const { code, stdout, stderr } = await vx([]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(/^Usage: vx /);
  });

  test("--version prints the version", async () => {
    const version = expect.stringMatching(/^\d+\.\d+\.\d+\n$/);
    expect(await spawnVx(["--version"])).toEqual({ code: 0, stdout: version, stderr: "" });
  });
});

describe("wrong usage exits 2 with an error on stderr", () => {
  const WRONG: readonly (readonly [args: string, why: RegExp])[] = [
    ["nonesuch", /unknown command/],
    ["accounts nonesuch", /unknown command/],
    ["accounts list --nonesuch", /unknown option/],
    ["accounts list --version", /unknown option/],
    ["accounts create", /^vx: the option '--name <name>' is missing\n\(--help/],
    ["accounts create --nam acme", /^vx: unknown option '--nam'\n\(Did you mean --name\?\)/],
    ["accounts credit acct_1 1.00 --reson r", /^vx: unknown option '--reson'\n\(Did you mean --reason\?\)/],
    ["keys create acct_1 --nmae n", /^vx: unknown option '--nmae'\n\(Did you mean --name\?\)/],
    ["plans set tiny --rmp 5", /^vx: unknown option '--rmp'\n\(Did you mean --rpm\?\)/],
    ["accounts get", /account/],
    ["accounts update acme", /^vx: nothing to change; add --external-id, --email, --notes or --low-balance/],
    ["accounts suspend acme", /--reason/],
    ...[
      "webhooks create --url https://hooks.example.com",
      ...["webhooks update wh_1 --state paused", "webhooks delete wh_1", "webhooks rotate wh_1"],
      ...["webhooks redeliver wh_1 --event evt_1", "members invite acme --role owner", "members invite-sign-up"],
      ...["members remove acme usr_1", "members view acme"],
    ].map((args) => [args, /'--reason <text>' is missing/] as const),
    ["accounts credit acct_1 --reason r", /amount/],
    ["accounts credit acct_1 25.00", /--reason/],
    ["accounts credit acct_1 -1 --reason r", /amount/],
    [
      "accounts credit acct_1 25,00 --reason r",
      /^vx: <amount>: must be an amount such as 25\.00, with a dot and at most 6 decimals, not "25,00" \(--help/,
    ],
    ["accounts credit acct_1 9000000000 --reason r", /^vx: <amount>: must be between -1000000000\.00 and 1000000000\.00/],
    ["accounts credit acct_1 1.0000001 --reason r", /amount/],
    ["accounts credit acct_1 9999999999999 --reason r", /amount/],
    ["accounts adjust acct_1 -0.00 --reason r", /amount/],
    ["accounts adjust acct_1 -x --reason r", /-x/],
    ...["2099-02-30", "2099-01-31T00:00:00Z", "soon"].map(
      (day) => [`accounts credit acct_1 5 --reason r --expires ${day}`, /--expires/] as const,
    ),
    ["accounts close acct_1 --reason r --write-off --refunded", /exclude each other/],
    ["accounts list --page-size 2", /--json/],
    ["prices set-account acct_1 --reason r", /add one of --discount, --file and --remove/],
    ["prices set-account acct_1 --reason r --discount 101%", /--discount: must be a percentage/],
    ["prices set-account acct_1 --reason r --file prices.yaml", /--file needs --model/],
    ["rerate --model m --from 2030-01-01 --to 2030-02-01 --prices prices.yaml", /'--reason <text>' is missing/],
    ["keys update key_1", /nothing to change; add --name/],
    ...["tokens", "tokens/day=", "tokens/day=5,user", "cost/day=1,000"].map(
      (limit) => [`keys update key_1 --limit ${limit}`, /--limit: must be a/] as const,
    ),
    ["keys rotate key_1 --overlap-seconds 2592001", /--overlap-seconds/],
    ["limits list", /--plan, --account/],
    ["limits set --plan pro --metric tokens --window day --amount 2.5", /a whole number/],
    ["limits set --plan pro --amount 1", /^vx: the option '--metric <metric>' is missing/],
    ["limits set --plan pro --metrc cost --amount 1", /^vx: unknown option '--metrc'\n\(Did you mean --metric\?\)/],
    [
      "limits set --plan pro --metric requests --amount 1",
      /Allowed choices are cost, tokens, generations, concurrent, cost_alert\./,
    ],
    ["topups list --state gone", /Allowed choices are pending, paid, failed, expired, refunded, disputed\./],
    ["usage show --sort name", /--sort: must be one of cost, requests, start/],
    ["usage export --format xml", /--format: must be csv or focus/],
    ["ledger list acct_00000000000000000000000000 --csv --json", /--csv contains all pages/],
    ["keys create --name n", /--account/],
    [
      "keys create acct_1 --account acct_2 --name n",
      /^vx: --account is "acct_2", but the argument is "acct_1"; give one account/,
    ],
    ["keys create acct_1 --name n --rpm 0", /^vx: --rpm: must be a whole number from 1 to 1000000, not "0"/],
    ["keys create acct_1 --name n --rpm 99999999999", /--rpm/],
    ["keys create acct_1 --name n --expires-at tomorrow", /^vx: --expires-at: must be a time such as .* not "tomorrow"/],
    ["keys create acct_1 --name n --expires-at 2030-02-30", /--expires-at/],
    ["keys set-limit key_1", /--rpm N or --default/],
    ["keys set-limit key_1 --rpm 5 --default", /cannot be used/],
    ["plans set tiny --rpm five --max-active-keys 2", /--rpm/],
    ["operators create --name ada", /--role/],
    ["operators create --name ada --role root", /^vx: --role: must be one of viewer, support, finance, admin/],
    ["operators set-role op_1", /role/],
    ["operators set-role op_1 root", /^vx: role: must be one of viewer, support, finance, admin/],
    ["ledger list", /--account/],
    ["log --method CreditAcount", /^vx: --method: there is no method "CreditAcount"; did you mean CreditAccount\?\n$/],
    ["ledger list acct_1 --limit -1", /--limit/],
    ["migrate", /DATABASE_URL/],
    ["migrate --dry-run --status", /cannot be used/],
    ["copy-database", /--to <url>/],
    ["copy-database --to db.example", /^vx: --to /],
  ];

  test.for(WRONG)("vx %s", async ([args, why]) => {
    const { code, stdout, stderr } = await vx(args.split(" "), { VX_ADMIN_TOKEN: "a-token-of-some-length" });
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(why);
    expect(stderr).not.toMatch(/^ +at /m);
  });

  test.for([
    { VX_ADMIN_PORT: "http" },
    { VX_ADMIN_PORT: "0" },
    { VX_ADMIN_PORT: "65536" },
    { VX_ADMIN_HOST: "a host" },
    { VX_ADMIN_HOST: "host/path" },
    { VX_ADMIN_TOKEN: "short" },
  ])("a call with %o", async (env) => {
    const { code, stdout, stderr } = await vx(["plans", "list"], { VX_ADMIN_TOKEN: "a-token-of-some-length", ...env });
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(new RegExp(`^vx: invalid setting: ${Object.keys(env)[0]}: `));
  });

  test("migrate with an invalid URL, without the password in the error", async () => {
    const { code, stderr } = await vx(["migrate"], { DATABASE_URL: "postgres://owner:secret@host:99999/vx" });
    expect({ code, stderr }).toEqual({ code: 2, stderr: "vx: invalid setting: DATABASE_URL: has no valid port: 99999\n" });
  });

  type WrongSetting = [name: string, value: string, problem: string, others?: Record<string, string>];
  test.for<WrongSetting>([
    ["PORT", "1.5", 'must be a whole number from 0 to 65535, not "1.5"'],
    ["PORT", "65536", 'must be a whole number from 0 to 65535, not "65536"'],
    ["VX_WORKERS", "0", 'must be a whole number from 1 to 64, not "0"'],
    ["VX_MAX_BODY_BYTES", "10MB", 'must be a whole number from 1024 to 1073741824, not "10MB"'],
    ["VX_SEED_DEMO", "yes", 'must be 0 or 1, not "yes"'],
    ["VX_LOG_LEVEL", "loud", 'must be one of fatal, error, warn, info, debug, trace, silent, not "loud"'],
    ["VX_TLS_CERT", "/none.pem", "/none.pem cannot be read: no such file or directory (ENOENT)", { VX_TLS_KEY: "/none.pem" }],
    ["VX_PRODUCT_NAME", "Ac\nme", "must not contain control characters"],
    ["VX_PRODUCT_NAME", " ", "must not be blank"],
    ["VX_PRODUCT_NAME", "a".repeat(61), "must have at most 60 characters, not 61"],
    ["VX_PRODUCT_LOGO", "/none.png", "/none.png cannot be read: no such file or directory (ENOENT)"],
    ["VX_PRODUCT_LOGO", resolve("package.json"), `${resolve("package.json")} must be an SVG, PNG, JPEG, GIF or WebP image`],
    ["VX_PRODUCT_LOGO", "/dev/zero", "/dev/zero is larger than 262144 bytes"],
    ...["javascript:alert(1)", "https://a b"].map(
      (url): WrongSetting => [
        "VX_SUPPORT_URL",
        url,
        `must be an https, http or mailto URL of at most 2000 characters, not "${url}"`,
      ],
    ),
  ])("serve with %s=%j", async ([name, value, problem, others]) => {
    const { code, stderr } = await vx(["serve"], { [name]: value, ...others });
    expect({ code, stderr }).toEqual({ code: 2, stderr: `vx: invalid settings\n${name}: ${problem}\n` });
  });

  test("serve with a certificate without its key", async () => {
    const line = "VX_TLS_KEY: is missing; set both VX_TLS_CERT and VX_TLS_KEY, or neither";
    expect(await vx(["serve"], { VX_TLS_CERT: "a.pem" })).toMatchObject({ code: 2, stderr: `vx: invalid settings\n${line}\n` });
  });
});
