import { expect, test } from "vitest";
import { useStore } from "../support/store.ts";

const store = useStore();

test("a null that the SQL of a function does not declare fails a test", async () => {
  await expect(store.database.call("get_account", null, "acct_x")).rejects.toThrow("p_lane of vx.get_account is null");
});
