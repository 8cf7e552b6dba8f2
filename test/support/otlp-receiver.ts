import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";

export type ReceivedSpan = {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly isError: boolean;
  readonly nanos: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly resource: Readonly<Record<string, unknown>>;
};

type ReceivedMetric = {
  readonly name: string;
  readonly unit: string;
  readonly points: readonly {
    readonly value: number;
    readonly count: number;
    readonly attributes: Readonly<Record<string, unknown>>;
  }[];
};

/** Receives OTLP over HTTP as JSON. */
export class OtlpReceiver {
  readonly spans: ReceivedSpan[] = [];
  /** The last values. */
  readonly metrics = new Map<string, ReceivedMetric>();
  readonly headers: IncomingHttpHeaders[] = [];
  /** All that was received. */
  text = "";
  readonly #server = createServer(async (request, response) => {
    this.headers.push(request.headers);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    this.text += text;
    this.#read(JSON.parse(text) as Payload);
    response.setHeader("content-type", "application/json");
    response.end("{}");
  });

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #read({ resourceSpans = [], resourceMetrics = [] }: Payload): void {
    for (const { resource, scopeSpans } of resourceSpans) {
      for (const span of scopeSpans.flatMap(({ spans }) => spans)) {
        this.spans.push({
          name: span.name,
          kind: span.kind,
          traceId: span.traceId,
          spanId: span.spanId,
          parentSpanId: span.parentSpanId ?? "",
          isError: span.status?.code === 2,
          nanos: Number(BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano)),
          attributes: valuesOf(span.attributes),
          resource: valuesOf(resource.attributes),
        });
      }
    }
    for (const { name, unit, sum, histogram } of resourceMetrics.flatMap(({ scopeMetrics }) =>
      scopeMetrics.flatMap(({ metrics }) => metrics),
    )) {
      const points = (sum ?? histogram)?.dataPoints ?? [];
      this.metrics.set(name, {
        name,
        unit,
        points: points.map((point) => ({
          value: point.asDouble ?? Number(point.asInt ?? 0),
          count: Number(point.count ?? 0),
          attributes: valuesOf(point.attributes),
        })),
      });
    }
  }
}

type Attribute = { readonly key: string; readonly value: Readonly<Record<string, unknown>> };
type Point = {
  readonly asDouble?: number;
  readonly asInt?: number | string;
  readonly count?: number | string;
  readonly attributes?: readonly Attribute[];
};
type Payload = {
  readonly resourceSpans?: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly {
      readonly spans: readonly {
        readonly name: string;
        readonly kind: number;
        readonly traceId: string;
        readonly spanId: string;
        readonly parentSpanId?: string;
        readonly startTimeUnixNano: string;
        readonly endTimeUnixNano: string;
        readonly status?: { readonly code?: number };
        readonly attributes?: readonly Attribute[];
      }[];
    }[];
  }[];
  readonly resourceMetrics?: readonly {
    readonly scopeMetrics: readonly {
      readonly metrics: readonly {
        readonly name: string;
        readonly unit: string;
        readonly sum?: { readonly dataPoints: readonly Point[] };
        readonly histogram?: { readonly dataPoints: readonly Point[] };
      }[];
    }[];
  }[];
};

function valuesOf(attributes: readonly Attribute[] = []): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, plainOf(value)]));
}

function plainOf({ arrayValue, intValue, ...other }: Readonly<Record<string, unknown>>): unknown {
  if (intValue !== undefined) return Number(intValue);
  if (arrayValue === undefined) return Object.values(other)[0];
  return (arrayValue as { values: Record<string, unknown>[] }).values.map(plainOf);
}
