import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { AdminService } from "../../gen/vx/admin/v1/admin_pb.js";
import { OPERATOR_TOKEN, type TestApp } from "./app.ts";
import { started } from "./started.ts";

export type Operator = Client<typeof AdminService>;

export function operatorOf({ adminUrl }: Pick<TestApp, "adminUrl">, token = OPERATOR_TOKEN): Operator {
  const transport = createGrpcTransport({
    baseUrl: adminUrl,
    interceptors: [
      (next) => (request) => {
        request.header.set("authorization", `Bearer ${token}`);
        return next(request);
      },
    ],
  });
  return createClient(AdminService, transport);
}

export function useOperator(app: TestApp): Operator {
  return started(() => operatorOf(app));
}

export type TestKey = { readonly id: string; readonly secret: string; readonly accountId: string };

export type TestKeyOptions = {
  readonly name?: string;
  readonly accountId?: string;
  readonly scopes?: string[];
  readonly plan?: string;
  readonly rateLimitRpm?: number;
};

/** Creates an account on the plan "scale" and a key, which has all scopes by default. */
export async function createTestKey(operator: Operator, options: TestKeyOptions = {}): Promise<TestKey> {
  const accountId = options.accountId ?? (await createTestAccount(operator, options.plan));
  const { apiKey, secret } = await operator.createKey({
    accountId,
    name: options.name ?? "test",
    scopes: options.scopes ?? ["generate", "read", "keys"],
    ...(options.plan === undefined ? {} : { plan: options.plan }),
    ...(options.rateLimitRpm === undefined ? {} : { rateLimitRpm: options.rateLimitRpm }),
  });
  return { id: apiKey?.id ?? "", secret, accountId };
}

export function useTestKey(app: TestApp, options?: TestKeyOptions): TestKey {
  return started(() => createTestKey(operatorOf(app), options));
}

export async function createTestAccount(operator: Operator, plan = "scale"): Promise<string> {
  const { account } = await operator.createAccount({ name: "test", plan });
  return account?.id ?? "";
}
