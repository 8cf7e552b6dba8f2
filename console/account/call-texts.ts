/** An image of a call: a file of the person. */
export type PlaygroundImage = { readonly name: string; readonly bytes: Uint8Array };

/** A message of the playground. */
export type PlaygroundMessage = {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
  readonly images?: readonly PlaygroundImage[];
};

/** A call of the playground. */
export type PlaygroundCall = {
  readonly model: string;
  readonly messages: readonly PlaygroundMessage[];
  readonly maxTokens?: number;
  readonly temperature?: number;
  readonly reasoningEffort?: string;
};

/**
 * The same streamed call in several languages; the key is in VX_KEY, and the address for the clients in VX_URL. Images are read
 * from files in the current directory.
 */
export function callTexts(call: PlaygroundCall, origin: string): Readonly<Record<string, string>> {
  const isPlain = origin.startsWith("http:");
  return {
    curl: shellText(bodyText(call, true), (data) => [
      `curl -N ${origin}/v1/generate`,
      '-H "Authorization: Bearer $VX_KEY"',
      "-H 'Content-Type: application/json'",
      `-d ${data === "" ? "@-" : data}`,
    ]),
    Python: pythonText(call),
    TypeScript: typeScriptText(call),
    Go: goText(call),
    grpcurl: shellText(bodyText(call, false), (data) => [
      `grpcurl ${isPlain ? "-plaintext " : ""}-H "Authorization: Bearer $VX_KEY"`,
      `-d ${data === "" ? "@" : data}`,
      `${hostOf(origin)} vx.v1.GenerateService/StreamGenerate`,
    ]),
  };
}

/** What the texts need in the environment. */
export function environmentText(origin: string): string {
  return `export VX_URL=${origin} VX_KEY=vx_live_…`;
}

/** Begins and ends the name of a file in a JSON text, in which it cannot occur otherwise. */
const FILE = "\0";

/** The JSON of the request. The bytes of an image are the name of its file. */
function bodyText({ model, messages, ...options }: PlaygroundCall, isStream: boolean): string {
  const rest = JSON.stringify({
    max_tokens: options.maxTokens,
    temperature: options.temperature,
    reasoning_effort: options.reasoningEffort,
    ...(isStream && { stream: true }),
  });
  const list = messagesText(messages, (name) => `"${FILE}${name}${FILE}"`);
  return `{"model":${JSON.stringify(model)},"messages":${list}${rest === "{}" ? "}" : `,${rest.slice(1)}`}`;
}

/** The messages as JSON, in which `fileText` stands for the bytes of a file. */
function messagesText(messages: readonly PlaygroundMessage[], fileText: (name: string) => string): string {
  const texts = messages.map(({ role, content, images = [] }) => {
    if (images.length === 0) return JSON.stringify({ role, content });
    const parts = images.map(({ name }) => `{"image":{"data":${fileText(name)}}}`);
    return `{"role":"${role}","parts":[${[JSON.stringify({ text: content }), ...parts].join(",")}]}`;
  });
  return `[${texts.join(",")}]`;
}

/** A command with the body as an argument; or with files, which are too long for one, on its standard input. */
function shellText(body: string, commandOf: (data: string) => readonly string[]): string {
  const pieces = body.split(FILE);
  if (pieces.length === 1) return commandOf(shellQuoted(body)).join(" \\\n  ");
  const written = pieces.map((piece, index) =>
    index % 2 === 0 ? `printf %s ${shellQuoted(piece)}` : `base64 < ${shellQuoted(piece)} | tr -d '\\n'`,
  );
  return `{ ${written.join("; ")}; } |\n  ${commandOf("").join(" \\\n  ")}`;
}

function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** With the port, which grpcurl needs. */
function hostOf(origin: string): string {
  const { host, port, hostname, protocol } = new URL(origin);
  return port === "" ? `${hostname}:${protocol === "https:" ? 443 : 80}` : host;
}

// A string of JSON is a string of the languages below too.

function pythonText({ model, messages, maxTokens, temperature, reasoningEffort }: PlaygroundCall): string {
  const list = messagesText(messages, (name) => `open(${JSON.stringify(name)}, "rb").read()`);
  const options = [
    ...(maxTokens === undefined ? [] : [`max_tokens=${maxTokens}`]),
    ...(temperature === undefined ? [] : [`temperature=${temperature}`]),
    ...(reasoningEffort === undefined ? [] : [`reasoning_effort=${JSON.stringify(reasoningEffort)}`]),
  ];
  const all = [`model=${JSON.stringify(model)}`, "messages=messages", ...options];
  return `import vx

messages = ${list}
with vx.Client().stream(${all.join(", ")}) as stream:
    for delta in stream:
        print(delta.content, end="")
`;
}

function typeScriptText({ model, messages, maxTokens, temperature, reasoningEffort }: PlaygroundCall): string {
  const list = messagesText(messages, (name) => `readFileSync(${JSON.stringify(name)})`);
  const options = [
    ...(maxTokens === undefined ? [] : [`maxTokens: ${maxTokens}`]),
    ...(temperature === undefined ? [] : [`temperature: ${temperature}`]),
    ...(reasoningEffort === undefined ? [] : [`reasoningEffort: ${JSON.stringify(reasoningEffort)}`]),
  ];
  const all = [`model: ${JSON.stringify(model)}`, "messages", ...options];
  return `${hasImages(messages) ? 'import { readFileSync } from "node:fs";\n' : ""}import { Client } from "vx-client";

const client = new Client();
const messages = ${list};
const stream = client.stream({ ${all.join(", ")} });
for await (const { content } of stream) process.stdout.write(content);
`;
}

function hasImages(messages: readonly PlaygroundMessage[]): boolean {
  return messages.some(({ images = [] }) => images.length > 0);
}

/** The client has functions for the messages that a program writes. */
function goMessage({ role, content, images = [] }: PlaygroundMessage): string {
  const text = JSON.stringify(content);
  if (images.length > 0) {
    const parts = images.map(({ name }) => `{Image: &vx.Image{Data: file(${JSON.stringify(name)})}}`);
    return `{Role: "${role}", Parts: []*vx.ContentPart{{Text: new(${text})}, ${parts.join(", ")}}}`;
  }
  if (role === "assistant") return `{Role: "assistant", Content: new(${text})}`;
  return `vx.${role === "user" ? "User" : "System"}(${text})`;
}

const GO_FILE = `
func file(name string) []byte {
	data, err := os.ReadFile(name)
	if err != nil {
		log.Fatal(err)
	}
	return data
}
`;

function goText({ model, messages, maxTokens, temperature, reasoningEffort }: PlaygroundCall): string {
  const lines = messages.map((message) => `\t\t\t${goMessage(message)},`);
  const options = [
    ...(maxTokens === undefined ? [] : [`MaxTokens: new(int32(${maxTokens})),`]),
    ...(temperature === undefined ? [] : [`Temperature: new(float64(${temperature})),`]),
    ...(reasoningEffort === undefined ? [] : [`ReasoningEffort: new(${JSON.stringify(reasoningEffort)}),`]),
  ];
  return `package main

import (
	"context"
	"fmt"
	"log"
${hasImages(messages) ? '\t"os"\n' : ""}
	vx "github.com/vx-api/vx/clients/go"
)
${hasImages(messages) ? GO_FILE : ""}
func main() {
	client, err := vx.New()
	if err != nil {
		log.Fatal(err)
	}
	request := &vx.GenerateRequest{
		Model: ${JSON.stringify(model)},
		Messages: []*vx.Message{
${lines.join("\n")}
		},${options.map((line) => `\n\t\t${line}`).join("")}
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
