// Runs the code that the pages print for users, as it is printed: the quick start of /docs, and the calls of the playground.
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { callTexts, environmentText, type PlaygroundCall } from "../../console/account/call-texts.ts";
import { prepareGo, preparePython, prepareTypeScript } from "../own/programs.ts";
import { useTestApp } from "../support/app.ts";
import { operatorOf } from "../support/fixtures.ts";
import { imageOfSize, PNG } from "../support/images.ts";
import { CLIENTS } from "../support/installed.ts";
import { createPaidKey } from "../support/openai.ts";
import { problemOf } from "../support/python.ts";

const run = promisify(execFile);
const FOLDER = join(CLIENTS, "printed");
const GRPCURL = "github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.3";
/** The first run of a Go program compiles its libraries. */
const TIMEOUT_MS = 300_000;
const REPLY = /This is a reply of the sandbox\./;

/** Characters that one of the languages could take for something else. */
const HOSTILE = 'It\'s "here": `pwd` $HOME $(id) \\n %s {0} <b>&amp;</b> é 🎉 \u2028 !\nsecond line';
const SHORT = { model: "vx-sandbox-small", messages: [{ role: "user", content: HOSTILE }] } as const;
const LONG = {
  model: "vx-sandbox-small",
  messages: [
    { role: "system", content: HOSTILE },
    { role: "user", content: "one" },
    { role: "assistant", content: HOSTILE },
    { role: "user", content: HOSTILE },
  ],
  maxTokens: 64,
} as const;
/** A file name that one of the languages could take for something else. */
const FILE_NAME = `it's "$HOME" \`pwd\` é%s.png`;
/** More than an argument of a command can have. */
const IMAGE = imageOfSize(200_000);
const COMPLETE = {
  model: "vx-sandbox-small",
  messages: [
    { role: "user", content: HOSTILE, images: [{ name: FILE_NAME, bytes: IMAGE }] },
    { role: "assistant", content: "one" },
    {
      role: "user",
      content: "two",
      images: [
        { name: FILE_NAME, bytes: IMAGE },
        { name: "second.png", bytes: PNG },
      ],
    },
  ],
  maxTokens: 512,
  temperature: 1,
  reasoningEffort: "low",
} as const;
const CALLS = [
  ["one message", SHORT],
  ["a conversation with a maximum", LONG],
  ["images and all parameters", COMPLETE],
] as const;

const app = useTestApp();
let accountId: string;
let env: NodeJS.ProcessEnv;
let quickStart: ReadonlyMap<string, string>;
beforeAll(async () => {
  const key = await createPaidKey(operatorOf(app));
  accountId = key.accountId;
  env = { ...process.env, VX_URL: app.url, VX_KEY: key.secret };
  quickStart = codesOf(await (await fetch(`${app.url}/docs`)).text());
});

/** The code of each example of a page, by its id. */
function codesOf(page: string): Map<string, string> {
  const found = page.matchAll(/<code id="start-([a-z]+)">([\s\S]*?)<\/code>/g);
  return new Map([...found].map(([, name = "", code = ""]) => [name, textOf(code)]));
}

function textOf(source: string): string {
  const named: Record<string, string> = { lt: "<", gt: ">", quot: '"', amp: "&" };
  return source.replace(/&(?:#(\d+)|(\w+));/g, (_, number?: string, name = "") =>
    number === undefined ? (named[name] ?? "") : String.fromCodePoint(Number(number)),
  );
}

const printed = (name: string) => quickStart.get(name) ?? "";

async function shell(code: string, more: NodeJS.ProcessEnv = {}): Promise<string> {
  const cwd = join(FOLDER, "shell");
  writeImages(cwd);
  return (await run("sh", ["-c", code], { cwd, env: { ...env, ...more } })).stdout;
}

function writeImages(folder: string): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, FILE_NAME), IMAGE);
  writeFileSync(join(folder, "second.png"), PNG);
}

/** The call that the code made, in which the models see the images: the sandbox counts them. */
async function expectImages(call: PlaygroundCall): Promise<void> {
  const images = call.messages.flatMap(({ images: sent = [] }) => sent).length;
  const { entries } = await operatorOf(app).listLedgerEntries({ accountId, kind: "generation", pageSize: 1 });
  expect(entries[0]).toMatchObject({ images: BigInt(images) });
  expect((entries[0]?.reasoningTokens ?? 0n) > 0n).toBe(call.reasoningEffort !== undefined);
}

const selected = process.env.VX_OWN_CLIENTS?.split(",");

function reasonToSkip(name: string, prepare: () => string | undefined): string | undefined {
  if (selected?.includes(name) === false) return "not selected";
  const problem = prepare();
  if (problem !== undefined) console.error(`SKIPPED: the printed code for ${name} was not run. ${problem}`);
  return problem;
}

describe("curl", () => {
  test("of the quick start, with the variables that it sets", async () => {
    expect([...quickStart.keys()]).toEqual(["me", "curl", "python", "typescript", "go", "grpcurl"]);
    // The reader puts the key in.
    const me = printed("me").replace("vx_live_…", String(env.VX_KEY));
    const [first, second] = (await shell(`${me} --silent\necho\n${printed("curl")} --silent`, { VX_URL: "", VX_KEY: "" }))
      .trim()
      .split("\n");
    expect(JSON.parse(first ?? "")).toMatchObject({ plan: "scale" });
    expect(JSON.parse(second ?? "").message.content).toMatch(REPLY);
  });

  test.each(CALLS)("of the playground, with %s", async (_, call) => {
    const set = environmentText(app.url).replace("vx_live_…", String(env.VX_KEY));
    const code = `${set}\n${callTexts(call, app.url).curl} --silent`;
    expect(await shell(code, { VX_URL: "", VX_KEY: "" })).toMatch(/"done":/);
    await expectImages(call);
  });
});

const python = join(FOLDER, "python");
describe.skipIf(reasonToSkip("python", () => preparePython(python, "test/printed/requirements.txt")))("Python", () => {
  const runPython = async (code: string) => {
    writeImages(python);
    return (await run(join(python, "venv/bin/python"), ["-c", code], { cwd: python, env })).stdout;
  };

  test("of the quick start", async () => {
    expect(await runPython(printed("python"))).toMatch(REPLY);
  });

  test.each(CALLS)("of the playground, with %s", async (_, call) => {
    expect(await runPython(callTexts(call, app.url).Python ?? "")).toMatch(REPLY);
    await expectImages(call);
  });
});

const typescript = join(FOLDER, "typescript");
const { version: openai } = JSON.parse(readFileSync("node_modules/openai/package.json", "utf8"));
describe.skipIf(reasonToSkip("typescript", () => prepareTypeScript(typescript, { openai })))("TypeScript", () => {
  const runTypeScript = async (code: string) => {
    writeFileSync(join(typescript, "printed.ts"), code);
    writeImages(typescript);
    return (await run(process.execPath, ["printed.ts"], { cwd: typescript, env })).stdout;
  };

  test("of the quick start", async () => {
    expect(await runTypeScript(printed("typescript"))).toMatch(REPLY);
  });

  test.each(CALLS)("of the playground, with %s", async (_, call) => {
    expect(await runTypeScript(callTexts(call, app.url).TypeScript ?? "")).toMatch(REPLY);
    await expectImages(call);
  });
});

const go = join(FOLDER, "go");
describe.skipIf(reasonToSkip("go", () => prepareGo(go)))("Go", () => {
  const runGo = async (code: string) => {
    writeFileSync(join(go, "main.go"), code);
    writeImages(go);
    return (await run("go", ["run", "."], { cwd: go, env })).stdout;
  };

  test("of the quick start", { timeout: TIMEOUT_MS }, async () => {
    expect(await runGo(printed("go"))).toMatch(REPLY);
  });

  test.each(CALLS)("of the playground, with %s", { timeout: TIMEOUT_MS }, async (_, call) => {
    expect(await runGo(callTexts(call, app.url).Go ?? "")).toMatch(REPLY);
    await expectImages(call);
  });
});

/** Builds grpcurl. Returns the reason if that fails. */
function prepareGrpcurl(): string | undefined {
  mkdirSync(FOLDER, { recursive: true });
  return problemOf("env", `GOBIN=${resolve(FOLDER)}`, "go", "install", GRPCURL);
}

describe.skipIf(reasonToSkip("go", prepareGrpcurl))("grpcurl", () => {
  const path = { PATH: `${resolve(FOLDER)}:${process.env.PATH}` };

  test("of the quick start", async () => {
    expect(await shell(printed("grpcurl"), path)).toMatch(REPLY);
  });

  test.each(CALLS)("of the playground, with %s", async (_, call) => {
    expect(await shell(callTexts(call, app.url).grpcurl ?? "", path)).toMatch(/"done":/);
    await expectImages(call);
  });
});
