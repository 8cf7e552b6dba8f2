// one-api: routes chat completions and charges them to prepaid quotas, here in SQLite.
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { promisify } from "node:util";
import { Unavailable } from "../part.ts";
import { startLoggedProgram } from "../program.ts";
import { freePort, temporaryFolder } from "../server.ts";
import { PEERS, type StartPeer } from "./peer.ts";

const VERSION = "v0.6.10";
const MODULE = "github.com/songquanpeng/one-api";
const ACCESS_TOKEN = "0123456789abcdef0123456789abcdef";
/** It counts prompts of the models that it knows. */
const MODEL = "gpt-3.5-turbo";
const OPENAI_CHANNEL = 1;
const QUOTA = 1_000_000_000_000;

export const startOneApi: StartPeer = async (cleanup, upstream) => {
  const command = await buildOneApi();
  const cwd = temporaryFolder(cleanup);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const program = {
    command,
    args: ["--port", String(port)],
    env: { INITIAL_ROOT_ACCESS_TOKEN: ACCESS_TOKEN, TIKTOKEN_CACHE_DIR: writeEncodings(cwd) },
    cwd,
    readyUrl: `${url}/api/status`,
  };
  let { pid } = await startLoggedProgram(cleanup, program);
  await operate(url, "POST", "channel/", {
    name: "bench",
    type: OPENAI_CHANNEL,
    key: "none",
    base_url: upstream,
    models: MODEL,
    group: "default",
  });
  const { id, key } = await operate<{ id: number; key: string }>(url, "POST", "token/", {
    name: "bench",
    remain_quota: QUOTA,
    expired_time: -1,
  });
  return {
    version: `one-api ${VERSION}`,
    url,
    get pid() {
      return pid;
    },
    model: MODEL,
    secret: `sk-${key}`,
    headers: "",
    meter: {
      name: "quota, SQLite",
      readSpent: async () => {
        const token = await operate<{ remain_quota: number }>(url, "GET", `token/${id}`);
        return -token.remain_quota;
      },
      restart: async () => {
        ({ pid } = await startLoggedProgram(cleanup, program));
      },
    },
  };
};

async function operate<Data>(url: string, method: string, path: string, body?: object): Promise<Data> {
  const response = await fetch(`${url}/api/${path}`, {
    method,
    headers: { authorization: ACCESS_TOKEN, "content-type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
  });
  const { success, message, data } = (await response.json()) as { success: boolean; message: string; data: Data };
  if (!success) throw new Error(`one-api refused the ${path}: ${message}`);
  return data;
}

/** Returns the path of the program. Built once and kept. */
async function buildOneApi(): Promise<string> {
  const program = join(PEERS, `one-api-${VERSION}`);
  const run = promisify(execFile);
  try {
    if (!existsSync(program)) {
      const { stdout } = await run("go", ["mod", "download", "-json", `${MODULE}@${VERSION}`]);
      const { Dir: source } = JSON.parse(stdout) as { Dir: string };
      await run("go", ["build", "-C", source, "-o", program, "."]);
    }
  } catch (error) {
    throw new Unavailable(`one-api ${VERSION} cannot be built: ${(error as Error).message}`);
  }
  return program;
}

type Encoding = { readonly bpe_ranks: string };

/**
 * one-api downloads token encodings when it starts. This writes those of the npm package "tiktoken" to its cache,
 * so that it needs no network. Returns the folder.
 */
function writeEncodings(cwd: string): string {
  const folder = join(cwd, "encodings");
  mkdirSync(folder);
  const require = createRequire(import.meta.url);
  for (const name of ["cl100k_base", "o200k_base"]) {
    const { bpe_ranks } = require(`tiktoken/encoders/${name}.json`) as Encoding;
    const url = `https://openaipublic.blob.core.windows.net/encodings/${name}.tiktoken`;
    writeFileSync(join(folder, createHash("sha1").update(url).digest("hex")), ranksOf(bpe_ranks));
  }
  return folder;
}

/** Lines of a token in base64 and its rank. The package has one line for each run of ranks: "!", the first rank, the tokens. */
function ranksOf(runs: string): string {
  return runs
    .split("\n")
    .filter((run) => run !== "")
    .flatMap((run) => {
      const [, first, ...tokens] = run.split(" ");
      return tokens.map((token, at) => `${token} ${Number(first) + at}\n`);
    })
    .join("");
}
