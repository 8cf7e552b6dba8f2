//! Calls the server with tonic, and prints what it receives as JSON. The test says when the server stops and starts again.

mod vx {
    tonic::include_proto!("vx.v1");
}

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin, stdin};
use tokio::sync::Mutex;
use tonic::codec::CompressionEncoding;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_types::StatusExt;
use vx::embed_service_client::EmbedServiceClient;
use vx::generate_service_client::GenerateServiceClient;
use vx::me_service_client::MeServiceClient;
use vx::stream_generate_response::Event;
use vx::{ContentPart, EmbedRequest, GenerateRequest, GetMeRequest, Image, Message, StreamGenerateRequest};

const MODEL: &str = "vx-sandbox-small";
const MAX_BYTES: usize = 64 << 20;

type StdinLines = Arc<Mutex<Lines<BufReader<Stdin>>>>;

#[derive(Clone)]
struct Client {
    channel: Channel,
    key: String,
}

impl Client {
    fn open(address: &str, key: &str) -> Client {
        let channel = Endpoint::from_shared(format!("http://{address}"))
            .expect("an address")
            .http2_keep_alive_interval(Duration::from_secs(1))
            .keep_alive_while_idle(true)
            .connect_lazy();
        Client { channel, key: key.to_string() }
    }

    fn request<T>(&self, message: T, headers: &[(&'static str, &str)]) -> Request<T> {
        let mut request = Request::new(message);
        let authorization = format!("Bearer {}", self.key);
        for (name, value) in headers.iter().chain([&("authorization", authorization.as_str())]) {
            request.metadata_mut().insert(*name, value.parse().expect("a header"));
        }
        request
    }

    fn generations(&self) -> GenerateServiceClient<Channel> {
        GenerateServiceClient::new(self.channel.clone()).max_encoding_message_size(MAX_BYTES)
    }

    async fn get_me(&self) -> Result<(), Status> {
        let request = self.request(GetMeRequest {}, &[]);
        MeServiceClient::new(self.channel.clone()).get_me(request).await.map(|_| ())
    }

    async fn unary(&self) -> Value {
        let request = self.request(GetMeRequest {}, &[("x-request-id", "my-unary")]);
        let response = MeServiceClient::new(self.channel.clone()).get_me(request).await.expect("a response");
        let id = response.metadata().get("x-request-id").and_then(|id| id.to_str().ok());
        json!({"code": "OK", "plan": response.get_ref().plan, "requestId": id})
    }

    async fn generate(&self, mut client: GenerateServiceClient<Channel>) -> Value {
        let response = client.generate(self.request(prompt("hello"), &[])).await.expect("a response").into_inner();
        let text = response.message.and_then(|message| message.content);
        json!({"code": "OK", "text": text, "output": response.usage.expect("usage").output_tokens})
    }

    /// Reads a stream. It is dropped, which cancels it, after some pieces unless that is zero.
    async fn stream(&self, text: &str, headers: &[(&'static str, &str)], limit: Limit) -> Value {
        let message = StreamGenerateRequest { model: MODEL.into(), messages: vec![said(text)], ..Default::default() };
        let mut request = self.request(message, headers);
        if let Limit::Deadline(limit) = limit {
            request.set_timeout(limit);
        }
        let (mut pieces, mut done) = (0, false);
        let mut status = Status::ok("");
        match self.generations().stream_generate(request).await {
            Err(error) => status = error,
            Ok(response) => {
                let mut messages = response.into_inner();
                loop {
                    match messages.message().await {
                        Ok(None) => break,
                        Err(error) => {
                            status = error;
                            break;
                        }
                        Ok(Some(message)) if matches!(message.event, Some(Event::Done(_))) => done = true,
                        Ok(Some(_)) => pieces += 1,
                    }
                    if matches!(limit, Limit::Pieces(most) if pieces == most) {
                        status = Status::cancelled("");
                        break;
                    }
                }
            }
        }
        json!({"code": code_of(status.code()), "pieces": pieces, "done": done, "reason": reason_of(&status)})
    }

    async fn errors(&self, without_key: Client) -> Value {
        let unknown = GenerateRequest { model: "no-such-model".into(), ..prompt("hello") };
        let unknown = self.generations().generate(self.request(unknown, &[])).await.expect_err("an error");
        let invalid = GenerateRequest { model: MODEL.into(), ..Default::default() };
        let invalid = self.generations().generate(self.request(invalid, &[])).await.expect_err("an error");
        let no_key = without_key.get_me().await.expect_err("an error");
        let violations = invalid.get_details_bad_request().map(|bad| bad.field_violations).unwrap_or_default();
        let fields: Vec<String> = violations.into_iter().map(|violation| violation.field).collect();
        json!({
            "unknown": [code_of(unknown.code()), reason_of(&unknown)],
            "invalid": [code_of(invalid.code()), reason_of(&invalid), fields],
            "noKey": [code_of(no_key.code()), reason_of(&no_key)],
        })
    }

    async fn deadline(&self) -> Value {
        let limit = Limit::Deadline(Duration::from_secs(2));
        let late = self.stream("[[tokens=400 delay_ms=100]]", &[("x-request-id", "my-deadline")], limit).await;
        json!({"code": late["code"], "somePieces": late["pieces"].as_i64() > Some(0)})
    }

    async fn replay(&self) -> Value {
        let mut ids = Vec::new();
        let mut replayed = Vec::new();
        for _ in 0..2 {
            let request = self.request(prompt("hello"), &[("idempotency-key", "key of tonic")]);
            let response = self.generations().generate(request).await.expect("a response");
            let value = response.metadata().get("idempotency-replayed").and_then(|value| value.to_str().ok());
            replayed.push(value.unwrap_or_default().to_string());
            ids.push(response.into_inner().id);
        }
        ids.dedup();
        json!({"ids": ids.len(), "replayed": replayed})
    }

    /// Sends and receives a message of more than 5 MB.
    async fn large(&self) -> Value {
        let mut data = b"\x89PNG\r\n\x1a\n".to_vec();
        data.resize(5 << 20, 0);
        let image = Image { data: Some(data), ..Default::default() };
        let parts = vec![
            ContentPart { text: Some("What is this?".into()), image: None },
            ContentPart { text: None, image: Some(image) },
        ];
        let message = Message { role: "user".into(), parts, ..Default::default() };
        let request = GenerateRequest { model: MODEL.into(), messages: vec![message], ..Default::default() };
        let sent = self.generations().generate(self.request(request, &[])).await;
        let request =
            EmbedRequest { model: "vx-sandbox-embed".into(), input: vec!["a".into(); 512], dimensions: Some(2_600) };
        let mut client = EmbedServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_BYTES);
        let received = client.embed(self.request(request, &[])).await.expect("a response").into_inner();
        let values: usize = received.embeddings.iter().map(|embedding| embedding.values.len()).sum();
        let sent = sent.map_or_else(|error| code_of(error.code()), |_| "OK");
        json!({"sent": sent, "received": "OK", "values": values})
    }

    /// More calls at once than the server allows on one connection.
    async fn concurrent(&self) -> Value {
        let mut calls = Vec::new();
        for _ in 0..300 {
            let (one, other) = (self.clone(), self.clone());
            calls.push(tokio::spawn(async move {
                json!(one.get_me().await.map_or_else(|error| code_of(error.code()), |()| "OK"))
            }));
            calls.push(tokio::spawn(
                async move { other.stream("[[tokens=12]]", &[], Limit::None).await["code"].clone() },
            ));
        }
        let mut counts = HashMap::<String, u32>::new();
        for call in calls {
            let code = call.await.expect("a code");
            *counts.entry(code.as_str().unwrap_or_default().to_string()).or_default() += 1;
        }
        json!({"counts": counts})
    }

    /// Starts a stream, and another call after the server was told to stop.
    async fn drain(&self, lines: &StdinLines) -> Value {
        let message = StreamGenerateRequest {
            model: MODEL.into(),
            messages: vec![said("[[tokens=120 delay_ms=100]]")],
            ..Default::default()
        };
        let response = self.generations().stream_generate(self.request(message, &[])).await.expect("a stream");
        let mut messages = response.into_inner();
        let (mut pieces, mut during) = (0, "OK");
        let code = loop {
            match messages.message().await {
                Ok(None) => break "OK",
                Err(error) => break code_of(error.code()),
                Ok(Some(_)) => pieces += 1,
            }
            if pieces == 1 {
                say("streaming");
                wait(lines).await;
                during = self.get_me().await.map_or_else(|error| code_of(error.code()), |()| "OK");
            }
        };
        json!({"code": code, "pieces": pieces, "during": during})
    }
}

#[derive(Clone, Copy)]
enum Limit {
    None,
    Pieces(u32),
    Deadline(Duration),
}

fn said(text: &str) -> Message {
    Message { role: "user".into(), content: Some(text.into()), ..Default::default() }
}

fn prompt(text: &str) -> GenerateRequest {
    GenerateRequest { model: MODEL.into(), messages: vec![said(text)], ..Default::default() }
}

fn reason_of(status: &Status) -> String {
    let info = status.get_details_error_info();
    info.map(|info| format!("{} {}", info.domain, info.reason)).unwrap_or_default()
}

fn code_of(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::Unavailable => "UNAVAILABLE",
        Code::Unauthenticated => "UNAUTHENTICATED",
        Code::Internal => "INTERNAL",
        _ => "another code",
    }
}

fn say(line: &str) {
    println!("{line}");
    std::io::stdout().flush().expect("a reader");
}

async fn wait(lines: &StdinLines) {
    lines.lock().await.next_line().await.expect("a line").expect("a line");
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let client = Client::open(&arguments[2], &arguments[3]);
    let lines = Arc::new(Mutex::new(BufReader::new(stdin()).lines()));
    let kept = client.clone();
    let keep_alive = tokio::spawn(async move { kept.stream("[[tokens=8 delay_ms=2000]]", &[], Limit::None).await });
    let gzip =
        client.generations().send_compressed(CompressionEncoding::Gzip).accept_compressed(CompressionEncoding::Gzip);
    let cancel = [("x-request-id", "my-cancellation")];
    let mut results = json!({
        "unary": client.unary().await,
        "generate": client.generate(client.generations()).await,
        "stream": client.stream("[[tokens=40]] hello", &[], Limit::None).await,
        "errors": client.errors(Client::open(&arguments[2], "vx_live_x")).await,
        "streamError": client.stream("[[tokens=40 fail_after=8]]", &[], Limit::None).await,
        "deadline": client.deadline().await,
        "cancel": client.stream("[[tokens=400 delay_ms=50]]", &cancel, Limit::Pieces(2)).await,
        "replay": client.replay().await,
        "large": client.large().await,
        "gzip": client.generate(gzip).await,
        "concurrent": client.concurrent().await,
        "keepAlive": keep_alive.await.expect("a stream"),
        "drain": client.drain(&lines).await,
    });
    say("drained");
    wait(&lines).await;
    // Its connections have no waiting for readiness: the first call after a failed one connects again.
    let code = client.get_me().await.map_or_else(|error| code_of(error.code()), |()| "OK");
    results["reconnect"] = json!({"code": code});
    say(&results.to_string());
}
