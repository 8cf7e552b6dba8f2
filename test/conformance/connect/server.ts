// The server under test: reads its configuration from stdin and runs until it is stopped.
import { type FileRegistry, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import { defaultLimits } from "../../../src/server/http/connection-limits.ts";
import { mount } from "../../rest/mount.ts";
import { createUntyped, messageType, readDescriptors } from "../descriptors.ts";
import { readMessages, writeMessage } from "../framed-stdio.ts";
import { ConformanceService, SERVICE } from "./service.ts";

type ServerCompatRequest = Message & {
  readonly messageReceiveLimit: number;
  readonly serverCreds?: { readonly cert: Uint8Array; readonly key: Uint8Array };
};

const [descriptors = ""] = process.argv.slice(2);
const registry = readDescriptors(descriptors);
const { value } = await readMessages("big-endian").next();
if (value) await writeMessage(await serve(registry, value), "big-endian");

async function serve(types: FileRegistry, bytes: Uint8Array): Promise<Uint8Array> {
  const request = fromBinary(messageType(types, "connectrpc.conformance.v1.ServerCompatRequest"), bytes);
  const { messageReceiveLimit, serverCreds } = request as ServerCompatRequest;
  const service = types.getService(SERVICE);
  if (!service) throw new Error(`the suite has no service ${SERVICE}`);
  const implementation = new ConformanceService(types);
  const { url } = await mount(
    { service },
    {
      methods: implementation.methods(),
      jsonOptions: { registry: implementation.registry },
      openRoutes: (router) => implementation.addStreamsTo(router),
      tls: serverCreds && { cert: Buffer.from(serverCreds.cert), key: Buffer.from(serverCreds.key) },
      maxBodyBytes: messageReceiveLimit,
      limits: { openStreamsPerConnection: defaultLimits.http2ConcurrentStreams },
    },
  );
  const { hostname: host, port } = new URL(url);
  const desc = messageType(types, "connectrpc.conformance.v1.ServerCompatResponse");
  return toBinary(desc, createUntyped(desc, { host, port: Number(port), pemCert: serverCreds?.cert }));
}
