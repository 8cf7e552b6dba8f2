// Opens many streams of one key, prints a line when each has sent data, and keeps them open until the process ends.
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { postRequest } from "../http-load.ts";

const [url = "", secret = "", count = "", version = ""] = process.argv.slice(2);
const STREAMS_PER_SESSION = 100;
/** An endless reply with a piece now and then. */
const BODY = JSON.stringify({
  model: "vx-sandbox-small",
  messages: [{ role: "user", content: "[[tokens=4000 delay_ms=2000]] Count." }],
  stream: true,
});

const { hostname, port } = new URL(url);
let open = 0;
const opened = () => {
  if (++open === Number(count)) console.log("all streams are open");
};
const failed = (error: Error) => {
  throw error;
};

function openHttp1(): void {
  const socket = connect({ host: hostname, port: Number(port) });
  socket.on("error", failed).once("data", (head: Buffer) => {
    if (!String(head).startsWith("HTTP/1.1 200")) throw new Error(String(head));
    opened();
  });
  socket.resume();
  socket.write(postRequest("/v1/generate", BODY, secret));
}

function openHttp2(streams: number): void {
  const session = connectHttp2(url);
  session.on("error", failed);
  for (let i = 0; i < streams; i++) {
    const stream = session.request({
      ":method": "POST",
      ":path": "/v1/generate",
      authorization: `Bearer ${secret}`,
      "content-type": "application/json",
    });
    stream.on("response", (headers) => {
      if (headers[":status"] !== 200) throw new Error(`status ${headers[":status"]}`);
    });
    stream.once("data", opened).resume();
    stream.end(BODY);
  }
}

if (version === "http1") for (let i = 0; i < Number(count); i++) openHttp1();
else for (let i = 0; i < Number(count); i += STREAMS_PER_SESSION) openHttp2(STREAMS_PER_SESSION);
