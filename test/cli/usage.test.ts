import { describe, expect, test } from "vitest";
import { vx } from "./support.ts";

const CALLS = [
  "accounts create",
  "accounts list",
  "accounts get",
  "accounts credit",
  "accounts adjust",
  "accounts set-plan",
  "keys create",
  "keys list",
  "keys revoke",
  "keys set-limit",
  "plans list",
  "plans set",
  "models list",
  "ledger list",
  "audit",
];
const OTHERS = ["", "serve", "migrate", "accounts", "keys", "plans", "models", "ledger"];

describe.concurrent("help", () => {
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

  test("is what 'vx' alone prints, as wrong usage", async () => {
    const { code, stdout, stderr } = await vx([]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(/^Usage: vx /);
  });

  test("--version prints the version", async () => {
    expect(await vx(["--version"])).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/),
      stderr: "",
    });
  });
});

describe.concurrent("wrong usage exits 2 and says why on stderr", () => {
  const WRONG: readonly [args: string, why: RegExp][] = [
    ["nonesuch", /unknown command/],
    ["accounts nonesuch", /unknown command/],
    ["accounts list --nonesuch", /unknown option/],
    ["accounts list --version", /unknown option/],
    ["accounts create", /--name/],
    ["accounts get", /account_id/],
    ["accounts credit acct_1 --reason r", /amount/],
    ["accounts credit acct_1 25.00", /--reason/],
    ["accounts credit acct_1 -1 --reason r", /amount/],
    ["accounts credit acct_1 1,5 --reason r", /amount/],
    ["accounts credit acct_1 1.0000001 --reason r", /amount/],
    ["accounts credit acct_1 9999999999999 --reason r", /amount/],
    ["accounts adjust acct_1 -0.00 --reason r", /amount/],
    ["accounts adjust acct_1 -x --reason r", /-x/],
    ["keys create --name n", /--account/],
    ["keys create acct_1 --account acct_2 --name n", /two different accounts/],
    ["keys create acct_1 --name n --rpm 0", /--rpm/],
    ["keys create acct_1 --name n --rpm 99999999999", /--rpm/],
    ["keys create acct_1 --name n --expires-at tomorrow", /--expires-at/],
    ["keys create acct_1 --name n --expires-at 2030-02-30", /--expires-at/],
    ["keys set-limit key_1", /--rpm N or --default/],
    ["keys set-limit key_1 --rpm 5 --default", /cannot be used/],
    ["plans set tiny --rpm five --max-active-keys 2", /--rpm/],
    ["ledger list", /--account/],
    ["ledger list acct_1 --limit -1", /--limit/],
    ["migrate", /DATABASE_URL/],
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
  ])("with the setting %o", async (env) => {
    const { code, stdout, stderr } = await vx(["plans", "list"], {
      VX_ADMIN_TOKEN: "a-token-of-some-length",
      ...env,
    });
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(new RegExp(`^vx: wrong setting: ${Object.keys(env)[0]}: `));
  });

  test("migrate, with what is no URL, without the password", async () => {
    const { code, stderr } = await vx(["migrate"], { DATABASE_URL: "postgres://owner:secret@host:99999/vx" });
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: "vx: wrong setting: DATABASE_URL: has no valid port: 99999\n",
    });
  });

  test("serve, with a wrong setting", async () => {
    const outcome = await vx(["serve"], { PORT: "http" });
    expect(outcome).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(/^vx: wrong setting\nPORT: /),
    });
  });
});
