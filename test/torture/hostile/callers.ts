import type { Operator } from "../tenants.ts";

/** Creates keys of different accounts without a balance and without limits, as anyone may have them; at least one. */
export async function createCallers(operator: Operator, count: number): Promise<[string, ...string[]]> {
  await operator.must("PutPlan", { name: "hostile", rpm: 1_000_000, maxActiveKeys: 1_000_000 });
  const create = async (name: string) => {
    const { account } = await operator.must("CreateAccount", { name, plan: "hostile" });
    const { id: accountId } = account as { id: string };
    const { secret } = await operator.must("CreateKey", { accountId, name, scopes: ["generate", "read"] });
    return secret as string;
  };
  const secrets: [string, ...string[]] = [await create("caller 0")];
  while (secrets.length < count) secrets.push(await create(`caller ${secrets.length}`));
  return secrets;
}
