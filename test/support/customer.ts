import { randomBytes } from "node:crypto";
import type { DescMethod, JsonObject } from "@bufbuild/protobuf";
import { expect, vi } from "vitest";
import { AccountService } from "../../gen/vx/account/v1/account_pb.js";
import { fingerprintOf, generateSessionToken } from "../../src/domain/credentials.ts";
import { memberPoliciesOf } from "../../src/rules/policy.ts";
import { developerServices } from "../../src/server/services.ts";
import { startTestApp, type TestApp } from "./app.ts";
import { BrowserJar } from "./browser-jar.ts";
import type { TestDatabase } from "./database.ts";
import { type Behaviour, CLIENT, IdentityProvider } from "./identity-provider.ts";
import { sendHttp1 } from "./raw.ts";
import { started } from "./started.ts";
import { typeIds } from "./type-ids.ts";

/** What the sessions of the customer page may call, and what that needs. */
export const memberPolicies = memberPoliciesOf([AccountService, ...developerServices]);
export const memberMethods: readonly DescMethod[] = [...memberPolicies.keys()];

/** The path of a method for sessions. */
export function memberPathOf({ parent, name }: DescMethod): string {
  const path = `/${parent.typeName}/${name}`;
  return parent.typeName === AccountService.typeName ? path : `/${AccountService.typeName}${path}`;
}

/** The same of the only method with the name. */
export function memberPath(name: string): string {
  const method = memberMethods.find((one) => one.name === name);
  if (!method) throw new Error(`sessions cannot call ${name}`);
  return memberPathOf(method);
}

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

type Headers = Readonly<Record<string, string | undefined>>;

type Answer = { readonly status: number; readonly body: JsonObject & { readonly code?: string } };

/** Addresses that no other person has. */
let people = 0;
const newEmail = () => `person${++people}@example.com`;

/** A person in a browser. */
export class Customer {
  readonly #app: CustomerApp;
  readonly email: string;
  /** The cookie of the session. */
  cookie: string;

  constructor(app: CustomerApp, email = "", cookie = "") {
    this.#app = app;
    this.email = email;
    this.cookie = cookie;
  }

  /** Has a session as after a sign-in at the provider; the subject is the address. */
  static async signIn(app: CustomerApp, email = newEmail(), isVerified = true): Promise<Customer> {
    const token = generateSessionToken(randomBytes);
    const fingerprint = Buffer.from(fingerprintOf(token), "hex");
    await app.database.owner`
      SELECT vx.sign_in_person(${app.provider.issuer}, ${subjectOf(email)}, ${isVerified ? email : ""}, ${typeIds.person()},
        ${typeIds.pageSession()}, ${fingerprint}, '', '')`;
    return new Customer(app, email, `vx_account=${token}`);
  }

  /** Signs in at the provider. */
  static async signInAtProvider(app: CustomerApp, email: string, behaviour: Partial<Behaviour> = {}): Promise<Customer> {
    Object.assign(app.provider.behaviour, { subject: subjectOf(email), email, emailVerified: true, ...behaviour });
    const browser = new BrowserJar();
    const answer = await browser.get(await browser.follow(`${app.url}/account/auth/sign-in`, callbackOf(app)));
    expect([answer.status, answer.headers.location]).toEqual([303, "/account"]);
    return new Customer(app, email, browser.header(app.url));
  }

  /** Signs in and signs up for an account. Returns its id too. */
  static async signUp(app: CustomerApp, email?: string): Promise<{ customer: Customer; accountId: string }> {
    const customer = await Customer.signIn(app, email);
    const { body } = await customer.call("SignUp", { name: `Account of ${customer.email.split("@")[0]}` });
    return { customer, accountId: body.accountId as string };
  }

  /** The same session at another server. */
  at(app: CustomerApp): Customer {
    return new Customer(app, this.email, this.cookie);
  }

  async personId(): Promise<string> {
    return String((await this.do("GetSession")).personId);
  }

  /** Returns the token of the link. */
  async invite(role: string, accountId: string, email = ""): Promise<string> {
    return tokenOf((await this.do("CreateInvitation", { role, email }, accountId)).url);
  }

  /** A person who joins the account with this role. */
  async admit(role: string, accountId: string): Promise<Customer> {
    const token = await this.invite(role, accountId);
    const person = await Customer.signIn(this.#app);
    await person.do("AcceptInvitation", { token });
    return person;
  }

  /** A method by its name, or a path. The headers are those of the page itself, unless others are given. */
  async send(method: string, body: string, accountId?: string, headers: Headers = {}) {
    const all: Headers = {
      "content-type": "application/json",
      "connect-protocol-version": "1",
      origin: this.#app.url,
      "sec-fetch-site": "same-origin",
      cookie: this.cookie,
      "x-vx-account": accountId,
      ...headers,
    };
    const sent = Object.entries(all).filter((header): header is [string, string] => header[1] !== undefined);
    const path = method.startsWith("/") ? method : memberPath(method);
    const answer = await sendHttp1(this.#app.url, { path, headers: Object.fromEntries(sent), body });
    return { status: answer.status, headers: answer.headers, text: answer.body.toString() };
  }

  async call(method: string, request: JsonObject = {}, accountId?: string, headers: Headers = {}): Promise<Answer> {
    const { status, text } = await this.send(method, JSON.stringify(request), accountId, headers);
    return { status, body: JSON.parse(text) };
  }

  /** The call must succeed. */
  async do(method: string, request: JsonObject = {}, accountId?: string): Promise<JsonObject> {
    const { status, body } = await this.call(method, request, accountId);
    expect([method, status, status === 200 ? "" : body]).toEqual([method, 200, ""]);
    return body;
  }

  /** The call must fail. Returns its status and the reason of the error. */
  async fail(method: string, request: JsonObject = {}, accountId?: string, headers: Headers = {}): Promise<string> {
    const { status, body } = await this.call(method, request, accountId, headers);
    const details = (body.details ?? []) as { type: string; debug?: { reason?: string } }[];
    const reason = details.find(({ debug }) => debug?.reason !== undefined)?.debug?.reason;
    return `${status} ${(reason ?? body.code ?? "").toLowerCase()}`;
  }
}

function subjectOf(email: string): string {
  return `subject of ${email}`;
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
