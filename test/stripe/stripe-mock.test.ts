import { type ChildProcess, spawn } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import type { ClientRequest, IncomingMessage } from "node:http";
import { createServer } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { StripeClient } from "../../src/payments/stripe/stripe-client.ts";
import { StripePayments } from "../../src/payments/stripe/stripe-payments.ts";
import { WebhookEndpoints } from "../../src/payments/stripe/webhook-endpoint.ts";
import { problemOf } from "../support/python.ts";

/** Stripe's own mock, which checks each request against Stripe's OpenAPI document. It keeps no state. */
const MOCK = "github.com/stripe/stripe-mock@v0.203.0";

const problem = problemOf("go", "version");
if (problem !== undefined) console.error(`SKIPPED: requests are not checked against stripe-mock: ${problem}`);

describe.skipIf(problem !== undefined)("stripe-mock", () => {
  let mock: ChildProcess;
  let payments: StripePayments;
  let address: string;
  /** The requests and their statuses: some callers take a refusal for an answer. */
  const answers: string[] = [];
  const record = (message: unknown) => {
    const { request, response } = message as { request: ClientRequest; response: IncomingMessage };
    answers.push(`${request.method} ${request.path} ${response.statusCode}`);
  };

  beforeAll(async () => {
    const port = await freePort();
    address = `http://127.0.0.1:${port}`;
    mock = spawn("go", ["run", MOCK, "-http-addr", `127.0.0.1:${port}`, "-strict-version-check=false"], {
      detached: true,
      stdio: ["ignore", "pipe", "inherit"],
    });
    await new Promise<void>((resolve, reject) => {
      mock.once("exit", () => reject(new Error(`go run ${MOCK} ended`)));
      mock.stdout?.on("data", (chunk: Buffer) => chunk.includes("Listening") && resolve());
    });
    const api = new URL(address);
    const settings = { secretKey: "sk_test_x", webhookSecret: "whsec_x", api, invoices: true };
    payments = new StripePayments(settings, "vx");
    subscribe("http.client.response.finish", record);
  }, 300_000);
  beforeEach(() => {
    answers.length = 0;
  });
  afterEach(() => {
    expect(answers.length).toBeGreaterThan(0);
    expect(answers.filter((answer) => !answer.endsWith(" 200"))).toEqual([]);
  });
  afterAll(async () => {
    unsubscribe("http.client.response.finish", record);
    process.kill(-(mock.pid as number), "SIGKILL");
    await once(mock, "exit");
  });

  test.each([undefined, "cus_1a2b3c"])("accepts the request for a page of the customer %s", async (customerId) => {
    const page = await payments.createPage({
      customerId,
      topUpId: "top_01kb0zq5p9e8tvm4x2c7h3j6rq",
      accountId: "acct_01kam4xxa5fzsbw0pdmm2h60vq",
      amountMicros: 25_000_000n,
      currency: "usd",
      returnUrl: "https://app.example/billing?tab=credit",
    });
    expect(page.id).toMatch(/^cs_/);
  });

  test("accepts the look-ups of pages and payments, and the list of undelivered events", async () => {
    await payments.lookUp({ pageId: "cs_test_a1b2c3" });
    await payments.lookUp({ paymentId: "pi_1a2b3c" });
    expect(await payments.undelivered()).toBeInstanceOf(Array);
  });

  test("accepts the requests for payments with a stored method", async () => {
    const account = { accountId: "acct_01kam4xxa5fzsbw0pdmm2h60vq", currency: "usd" };
    const customerId = await payments.createCustomer(account.accountId);
    const returnUrl = "https://app.example/billing";
    expect((await payments.createMethodPage({ ...account, customerId, returnUrl })).id).toMatch(/^cs_/);
    await payments.lookUpMethodPage("cs_test_a1b2c3");
    const id = await payments.createPayment({
      ...account,
      topUpId: "top_01kb0zq5p9e8tvm4x2c7h3j6rq",
      amountMicros: 25_000_000n,
      customerId,
      methodId: "pm_card_visa",
    });
    expect(id).toMatch(/^pi_/);
    expect(await payments.confirmPayment(id)).toBe(true);
    expect(await payments.cancelPayment(id)).toBe(true);
  });

  test("accepts the request for a page of the customer portal", async () => {
    expect(await payments.createBillingPage("cus_1a2b3c", "https://app.example/billing")).toMatch(/^https:/);
  });

  test("accepts the requests for the webhook endpoint, and lists the settings of the customer portal", async () => {
    const client = new StripeClient({ secretKey: "sk_test_x", api: new URL(address) });
    const endpoints = new WebhookEndpoints(client, "https://api.example", true);
    const { endpoint } = await endpoints.create();
    expect(endpoint.id).toMatch(/^we_/);
    await endpoints.find();
    await endpoints.repair({ ...endpoint, missing: ["invoice.paid"] });
    await client.request(({ billingPortal }) => billingPortal.configurations.list({ active: true, is_default: true, limit: 1 }));
  });

  test("accepts the requests that end the pages and the customer of an account that closes", async () => {
    expect(await payments.expirePage("cs_test_a1b2c3")).toBe(true);
    await payments.deleteCustomer("cus_1a2b3c");
    expect(answers).toEqual(["POST /v1/checkout/sessions/cs_test_a1b2c3/expire 200", "DELETE /v1/customers/cus_1a2b3c 200"]);
  });
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  return port;
}
