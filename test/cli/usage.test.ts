import { resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { spawnVx, vx } from "./support.ts";

const CALLS = [
  "accounts create",
  "accounts list",
  "accounts get",
  "accounts credit",
  "accounts adjust",
  "accounts set-plan",
  "accounts search",
  "accounts rename",
  "accounts update",
  "accounts suspend",
  "accounts resume",
  "keys create",
  "keys list",
  "keys revoke",
  "keys set-limit",
  "plans list",
  "plans set",
  "models list",
  "prices",
  "ledger list",
  "operators create",
  "operators list",
  "operators set-role",
  "operators revoke",
  "log",
  "audit",
];
const OTHERS = ["", "serve", "migrate", "copy-database", "accounts", "keys", "plans", "models", "ledger", "operators"];

describe("help", () => {
  test.for(CALLS)("of 'vx %s' has an example and --json", async (command) => {
    const { code, stdout, stderr } = await vx([...command.split(" "), "--help"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(new RegExp(`^Usage: vx ${command} [^]*--json[^]*Examples?:\\n +vx ${command}`));
  });

  test.for(OTHERS)("of 'vx %s' has an example", async (command) => {
    const { code, stdout, stderr } = await vx([...command.split(" "), "--help"].filter(Boolean));
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(new RegExp(`Examples?:\\n.*vx ${command}`));
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
    const { stdout } = await vx([...command.split(" "), "--help"]);
    // A description may need several lines.
    const options = stdout.replaceAll(/\n {10,}/g, " ").match(/^ {2}--.*\(required.*$/gm) ?? [];
    expect(options.map((line) => line.trim().split(/ {2,}/)[0]).sort()).toEqual([...required].sort());
  });

  test("of every command with a reason describes it in the same way", async () => {
    const commands = CALLS.filter((command) => /^(accounts|keys|plans|operators) (?!list|get|search)/.test(command));
    const texts = new Set<string>();
    for (const command of commands) {
      const { stdout } = await vx([...command.split(" "), "--help"]);
      const reason = /^ {2}--reason <text> +([^-]*?)(?: \(required\))?$/m.exec(stdout.replaceAll(/\n {10,}/g, " "));
      texts.add(reason?.[1] ?? `none of ${command}`);
    }
    expect([...texts]).toEqual([expect.stringMatching(/^why the change is made, /)]);
  });

  test("without a command is printed as wrong usage", async () => {
    const { code, stdout, stderr } = await vx([]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(/^Usage: vx /);
  });

  test("--version prints the version", async () => {
    expect(await spawnVx(["--version"])).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/),
      stderr: "",
    });
  });
});

describe("wrong usage exits 2 with an error on stderr", () => {
  const WRONG: readonly [args: string, why: RegExp][] = [
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
    ["webhooks create --url https://hooks.example.com", /'--reason <text>' is missing/],
    ["webhooks update wh_1 --state paused", /'--reason <text>' is missing/],
    ["webhooks delete wh_1", /'--reason <text>' is missing/],
    ["webhooks rotate wh_1", /'--reason <text>' is missing/],
    ["webhooks redeliver wh_1 --event evt_1", /'--reason <text>' is missing/],
    ["members invite acme --role owner", /'--reason <text>' is missing/],
    ["members invite-sign-up", /'--reason <text>' is missing/],
    ["members remove acme usr_1", /'--reason <text>' is missing/],
    ["members view acme", /'--reason <text>' is missing/],
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
    const { code, stdout, stderr } = await vx(args.split(" "));
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
    const { code, stdout, stderr } = await vx(["plans", "list"], {
      VX_ADMIN_TOKEN: "a-token-of-some-length",
      ...env,
    });
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(new RegExp(`^vx: invalid setting: ${Object.keys(env)[0]}: `));
  });

  test("migrate with an invalid URL, without the password in the error", async () => {
    const { code, stderr } = await vx(["migrate"], { DATABASE_URL: "postgres://owner:secret@host:99999/vx" });
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: "vx: invalid setting: DATABASE_URL: has no valid port: 99999\n",
    });
  });

  test.for<[Record<string, string>, string]>([
    [{ PORT: "1.5" }, 'PORT: must be a whole number from 0 to 65535, not "1.5"'],
    [{ PORT: "65536" }, 'PORT: must be a whole number from 0 to 65535, not "65536"'],
    [{ VX_WORKERS: "0" }, 'VX_WORKERS: must be a whole number from 1 to 64, not "0"'],
    [{ VX_MAX_BODY_BYTES: "10MB" }, 'VX_MAX_BODY_BYTES: must be a whole number from 1024 to 1073741824, not "10MB"'],
    [{ VX_SEED_DEMO: "yes" }, 'VX_SEED_DEMO: must be 0 or 1, not "yes"'],
    [{ VX_LOG_LEVEL: "loud" }, 'VX_LOG_LEVEL: must be one of fatal, error, warn, info, debug, trace, silent, not "loud"'],
    [{ VX_TLS_CERT: "a.pem" }, "VX_TLS_KEY: is missing; set both VX_TLS_CERT and VX_TLS_KEY, or neither"],
    [
      { VX_TLS_CERT: "/none.pem", VX_TLS_KEY: "/none.pem" },
      "VX_TLS_CERT: /none.pem cannot be read: no such file or directory (ENOENT)",
    ],
    [{ VX_PRODUCT_NAME: "Ac\nme" }, "VX_PRODUCT_NAME: must not contain control characters"],
    [{ VX_PRODUCT_NAME: " " }, "VX_PRODUCT_NAME: must not be blank"],
    [{ VX_PRODUCT_NAME: "a".repeat(61) }, "VX_PRODUCT_NAME: must have at most 60 characters, not 61"],
    [{ VX_PRODUCT_LOGO: "/none.png" }, "VX_PRODUCT_LOGO: /none.png cannot be read: no such file or directory (ENOENT)"],
    [
      { VX_PRODUCT_LOGO: resolve("package.json") },
      `VX_PRODUCT_LOGO: ${resolve("package.json")} must be an SVG, PNG, JPEG, GIF or WebP image`,
    ],
    [{ VX_PRODUCT_LOGO: "/dev/zero" }, "VX_PRODUCT_LOGO: /dev/zero is larger than 262144 bytes"],
    [
      { VX_SUPPORT_URL: "javascript:alert(1)" },
      'VX_SUPPORT_URL: must be an https, http or mailto URL of at most 2000 characters, not "javascript:alert(1)"',
    ],
    [
      { VX_SUPPORT_URL: "https://a b" },
      'VX_SUPPORT_URL: must be an https, http or mailto URL of at most 2000 characters, not "https://a b"',
    ],
  ])("serve with %o", async ([env, line]) => {
    const { code, stderr } = await vx(["serve"], env);
    expect({ code, stderr }).toEqual({ code: 2, stderr: `vx: invalid settings\n${line}\n` });
  });
});
