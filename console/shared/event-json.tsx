import { create, type JsonObject, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import { EventSchema } from "../../gen/vx/v1/event_pb.js";
import { CopyButton } from "./copy-button.tsx";

type EventJsonProps = { readonly event: MessageInitShape<typeof EventSchema> };

/** The event as GET /v1/events returns it. */
export function EventJson({ event }: EventJsonProps) {
  const message = create(EventSchema, event);
  const json = toJson(EventSchema, message, { useProtoFieldName: true, alwaysEmitImplicit: true });
  // REST has 64-bit integers as numbers.
  const text = JSON.stringify({ ...(json as JsonObject), seq: Number(message.seq) }, null, 2);
  return (
    <details class="event-json">
      <summary>Show as JSON</summary>
      <CopyButton text={text} what="JSON" />
      <pre class="shown-command">{text}</pre>
    </details>
  );
}
