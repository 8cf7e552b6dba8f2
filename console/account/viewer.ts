import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { KeyService } from "../../gen/vx/v1/key_pb.js";
import { LedgerService } from "../../gen/vx/v1/ledger_pb.js";
import { type GetMeResponse, MeService } from "../../gen/vx/v1/me_pb.js";

/** Who is signed in: a key, and what can be called with it. */
export type Viewer = {
  /** The key and the balance, when the viewer signed in. */
  readonly me: GetMeResponse;
  readonly meService: Client<typeof MeService>;
  readonly keyService: Client<typeof KeyService>;
  readonly ledgerService: Client<typeof LedgerService>;
};

/** Throws if the server does not accept the key. */
export async function signIn(transport: Transport): Promise<Viewer> {
  const meService = createClient(MeService, transport);
  return {
    me: await meService.getMe({}),
    meService,
    keyService: createClient(KeyService, transport),
    ledgerService: createClient(LedgerService, transport),
  };
}
