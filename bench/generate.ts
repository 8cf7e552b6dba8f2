// POST /v1/generate on the sandbox, with a durable hold and settlement per call, compared with a node:http
// JSON echo.
import { generateBody, openHttpLoad, postRequest } from "./http-load.ts";
import { createPayers } from "./payers.ts";
import { startServer } from "./server.ts";
import { type BenchDatabase, type Figure, hammer, median, startProgram } from "./support.ts";

const ACCOUNTS = 1_000;
const CONNECTIONS = 64;
const SECONDS = 3;
const ROUNDS = 5;
const PATH = "/v1/generate";

export async function generate(database: BenchDatabase): Promise<Figure[]> {
  const payers = await createPayers(database.owner, ACCOUNTS);
  const server = await startServer(database);
  const requests = payers.map(({ secret }) => postRequest(PATH, generateBody(), secret));
  const answer = await fetch(`${server.url}${PATH}`, {
    method: "POST",
    headers: { authorization: `Bearer ${payers[0]?.secret}`, "content-type": "application/json" },
    body: generateBody(),
  });
  const echoServer = startProgram(["bench/echo-server.ts"], { ANSWER: await answer.text() });
  const echoUrl = await echoServer.next(/^ready on (\S+)/);
  const many = await openHttpLoad(server.url, CONNECTIONS, requests);
  const hot = await openHttpLoad(server.url, CONNECTIONS, requests.slice(0, 1));
  const echo = await openHttpLoad(echoUrl, CONNECTIONS, requests);
  for (const load of [many, hot, echo]) await hammer(CONNECTIONS, 2, load.call);
  const rounds = [];
  for (let round = 0; round < ROUNDS; round++) {
    rounds.push({
      many: await hammer(CONNECTIONS, SECONDS, many.call),
      hot: await hammer(CONNECTIONS, SECONDS, hot.call),
      echo: await hammer(CONNECTIONS, SECONDS, echo.call),
    });
  }
  for (const load of [many, hot, echo]) load.close();
  await server.stop();
  await echoServer.stop();
  return [
    {
      name: `POST ${PATH}, ${CONNECTIONS} connections, ${ACCOUNTS} accounts`,
      value: median(rounds.map((r) => r.many.perSecond)),
      unit: "/s",
    },
    { name: "  p50", value: median(rounds.map((r) => r.many.p50Ms)), unit: "ms" },
    { name: "  p99", value: median(rounds.map((r) => r.many.p99Ms)), unit: "ms" },
    {
      name: "bare node:http, JSON of the same size in and out",
      value: median(rounds.map((r) => r.echo.perSecond)),
      unit: "/s",
    },
    {
      name: "generate / bare node:http",
      value: median(rounds.map((r) => r.many.perSecond / r.echo.perSecond)),
      unit: "×",
      atLeast: 0.1,
    },
    { name: "one hot account", value: median(rounds.map((r) => r.hot.perSecond)), unit: "/s" },
    { name: "  p99", value: median(rounds.map((r) => r.hot.p99Ms)), unit: "ms" },
    {
      name: `one account / ${ACCOUNTS} accounts`,
      value: median(rounds.map((r) => r.hot.perSecond / r.many.perSecond)),
      unit: "×",
      atLeast: 1,
    },
  ];
}
