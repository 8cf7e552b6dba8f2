/** A call of the playground. */
export type PlaygroundCall = {
  readonly model: string;
  readonly messages: readonly { readonly role: "system" | "user" | "assistant"; readonly content: string }[];
  readonly maxTokens: number | undefined;
};

/** The same streamed call in several languages; the key is in VX_KEY, and the address for the clients in VX_URL. */
export function callTexts(call: PlaygroundCall, origin: string): Readonly<Record<string, string>> {
  const { model, messages, maxTokens } = call;
  const limit = maxTokens !== undefined;
  const body = { model, messages, ...(limit && { max_tokens: maxTokens }) };
  const isPlain = origin.startsWith("http:");
  return {
    curl: [
      `curl -N ${origin}/v1/generate`,
      '-H "Authorization: Bearer $VX_KEY"',
      "-H 'Content-Type: application/json'",
      `-d ${shellQuoted({ ...body, stream: true })}`,
    ].join(" \\\n  "),
    // A string of JSON is a string of these languages too.
    Python: `import vx

messages = ${JSON.stringify(messages)}
with vx.Client().stream(model=${JSON.stringify(model)}, messages=messages${limit ? `, max_tokens=${maxTokens}` : ""}) as stream:
    for delta in stream:
        print(delta.content, end="")
`,
    TypeScript: `import { Client } from "vx-client";

const client = new Client();
const messages = ${JSON.stringify(messages)};
const stream = client.stream({ model: ${JSON.stringify(model)}, messages${limit ? `, maxTokens: ${maxTokens}` : ""} });
for await (const { content } of stream) process.stdout.write(content);
`,
    Go: goText(call),
    grpcurl: [
      `grpcurl ${isPlain ? "-plaintext " : ""}-H "Authorization: Bearer $VX_KEY"`,
      `-d ${shellQuoted(body)}`,
      `${hostOf(origin)} vx.v1.GenerateService/StreamGenerate`,
    ].join(" \\\n  "),
  };
}

/** What the texts need in the environment. */
export function environmentText(origin: string): string {
  return `export VX_URL=${origin} VX_KEY=vx_live_…`;
}

function shellQuoted(value: object): string {
  return `'${JSON.stringify(value).replaceAll("'", String.raw`'\''`)}'`;
}

/** With the port, which grpcurl needs. */
function hostOf(origin: string): string {
  const { host, port, hostname, protocol } = new URL(origin);
  return port === "" ? `${hostname}:${protocol === "https:" ? 443 : 80}` : host;
}

/** The client has functions for the messages that a program writes. */
function goMessage({ role, content }: PlaygroundCall["messages"][number]): string {
  const text = JSON.stringify(content);
  if (role === "assistant") return `{Role: "assistant", Content: new(${text})}`;
  return `vx.${role === "user" ? "User" : "System"}(${text})`;
}

function goText({ model, messages, maxTokens }: PlaygroundCall): string {
  const lines = messages.map((message) => `\t\t\t${goMessage(message)},`);
  return `package main

import (
	"context"
	"fmt"
	"log"

	vx "github.com/vx-api/vx/clients/go"
)

func main() {
	client, err := vx.New()
	if err != nil {
		log.Fatal(err)
	}
	request := &vx.GenerateRequest{
		Model: ${JSON.stringify(model)},
		Messages: []*vx.Message{
${lines.join("\n")}
		},${maxTokens === undefined ? "" : `\n\t\tMaxTokens: new(int32(${maxTokens})),`}
	}
	stream, err := client.Stream(context.Background(), request)
	if err != nil {
		log.Fatal(err)
	}
	for delta, err := range stream.Deltas() {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(delta.GetContent())
	}
}
`;
}
