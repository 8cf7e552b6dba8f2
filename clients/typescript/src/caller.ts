import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import type { CallOptions as ConnectOptions, Transport } from "@connectrpc/connect";
import type { CallOptions, Effect } from "./retries.ts";

/** The fields of a request, without the name of its type. */
export type Input<Desc extends DescMessage> = Omit<MessageInitShape<Desc>, "$typeName" | "$unknown">;

/** The client, as groups of its calls see it. */
export type Caller = {
  readonly transport: Transport;
  call<Result>(effect: Effect, options: CallOptions, attempt: (options: ConnectOptions) => Promise<Result>): Promise<Result>;
};
