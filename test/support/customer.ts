import type { JsonObject } from "@bufbuild/protobuf";
import { expect, vi } from "vitest";
import { AccountService } from "../../gen/vx/account/v1/account_pb.js";
import { startTestApp, type TestApp } from "./app.ts";
import { BrowserJar } from "./browser-jar.ts";
import type { TestDatabase } from "./database.ts";
import { CLIENT, IdentityProvider } from "./identity-provider.ts";
import { sendHttp1 } from "./raw.ts";
import { started } from "./started.ts";

export type CustomerApp = TestApp & { readonly provider: IdentityProvider };

/** A server with sign-in of customers at a real provider. */
export async function startCustomerApp(env: Record<string, string> = {}, database?: TestDatabase): Promise<CustomerApp> {
  const provider = await IdentityProvider.start();
  const app = await startTestApp({
    env: {
      VX_CUSTOMER_OIDC_ISSUER: provider.issuer,
      VX_CUSTOMER_OIDC_CLIENT_ID: CLIENT.id,
      VX_CUSTOMER_OIDC_CLIENT_SECRET: CLIENT.secret,
      ...env,
    },
    ...(database && { database }),
  });
  provider.register(callbackOf(app));
  return {
    ...app,
    provider,
    stop: async () => {
      await app.stop();
      await provider.stop();
    },
  };
}

export function useCustomerApp(env?: Record<string, string>): CustomerApp {
  return started(() => startCustomerApp(env));
}

export function callbackOf({ url }: { readonly url: string }): string {
  return `${url}/account/auth/callback`;
}

type Answer = { readonly status: number; readonly body: JsonObject & { readonly code?: string } };

/** A person in a browser. */
export class Customer {
  readonly #app: CustomerApp;
  readonly email: string;
  /** The cookie of the session. */
  cookie = "";

  constructor(app: CustomerApp, email: string) {
    this.#app = app;
    this.email = email;
  }

  /** Signs in; the subject is the address. */
  static async signIn(app: CustomerApp, email: string, emailVerified: unknown = true): Promise<Customer> {
    const customer = new Customer(app, email);
    Object.assign(app.provider.behaviour, { subject: `subject of ${email}`, email, emailVerified });
    const browser = new BrowserJar();
    const returned = await browser.follow(`${app.url}/account/auth/sign-in`, callbackOf(app));
    const answer = await browser.get(returned);
    expect([answer.status, answer.headers.location]).toEqual([303, "/account"]);
    customer.cookie = browser.header(app.url);
    return customer;
  }

  /** Signs in and signs up for an account. Returns its id too. */
  static async signUp(app: CustomerApp, email: string): Promise<{ customer: Customer; accountId: string }> {
    const customer = await Customer.signIn(app, email);
    const { body } = await customer.call("SignUp", { name: `Account of ${email.split("@")[0]}` });
    return { customer, accountId: body.accountId as string };
  }

  async call(
    method: string,
    request: JsonObject = {},
    accountId?: string,
    headers: Record<string, string | undefined> = {},
  ): Promise<Answer> {
    const all: Record<string, string | undefined> = {
      "content-type": "application/json",
      "connect-protocol-version": "1",
      origin: this.#app.url,
      "sec-fetch-site": "same-origin",
      cookie: this.cookie,
      "x-vx-account": accountId,
      ...headers,
    };
    const sent = Object.entries(all).filter((header): header is [string, string] => header[1] !== undefined);
    const answer = await sendHttp1(this.#app.url, {
      path: `/${AccountService.typeName}/${method}`,
      headers: Object.fromEntries(sent),
      body: JSON.stringify(request),
    });
    return { status: answer.status, body: JSON.parse(answer.body.toString()) };
  }

  /** The call must succeed. */
  async do(method: string, request: JsonObject = {}, accountId?: string): Promise<JsonObject> {
    const { status, body } = await this.call(method, request, accountId);
    expect([method, status, status === 200 ? "" : body]).toEqual([method, 200, ""]);
    return body;
  }

  /** The call must fail. Returns its status and the reason of the error. */
  async fail(
    method: string,
    request: JsonObject = {},
    accountId?: string,
    headers: Record<string, string | undefined> = {},
  ): Promise<string> {
    const { status, body } = await this.call(method, request, accountId, headers);
    const details = (body.details ?? []) as { type: string; debug?: { reason?: string } }[];
    const reason = details.find(({ debug }) => debug?.reason !== undefined)?.debug?.reason;
    return `${status} ${(reason ?? body.code ?? "").toLowerCase()}`;
  }
}

/** The token at the end of a link. */
export function tokenOf(url: unknown): string {
  return new URL(String(url)).hash.split("token=")[1] ?? "";
}

/** Until so many calls of the function wait for a lock. */
export async function untilWaiting({ database }: TestApp, name: string, calls = 1): Promise<void> {
  await vi.waitFor(async () => {
    const waiting = await database.owner`
      SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query ~ ${name}`;
    expect(waiting).toHaveLength(calls);
  });
}
