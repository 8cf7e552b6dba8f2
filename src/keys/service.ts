import { KeyService } from "../../gen/vx/v1/key_pb.js";
import { defineService } from "../api/define-service.ts";
import { readPage } from "../domain/page.ts";
import { createKey, revokeKey, rotateKey, updateKey } from "./changes.ts";
import { viewKey } from "./fields.ts";
import { getKey, listKeys } from "./store.ts";

export const keyService = defineService(KeyService, {
  createKey: (deps, request, call) => createKey(deps, call.key.accountId, request, call),
  listKeys: async ({ database }, request, { key }) => {
    const page = readPage("keys", request);
    const { rows, nextPageToken } = await listKeys(database, key.accountId, page, request.includePlayground);
    return { apiKeys: rows.map(viewKey), nextPageToken };
  },
  /** A key of another account gives not_found, like a key that does not exist. */
  getKey: async ({ database }, { keyId }, { key }) => ({
    apiKey: viewKey(await getKey(database, key.accountId, keyId)),
  }),
  updateKey,
  rotateKey,
  revokeKey,
});
