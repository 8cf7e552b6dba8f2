//! Generates a reply, streams one, and handles a balance that is too low.

mod vx {
    tonic::include_proto!("vx.v1");
}

use std::env;
use std::error::Error;
use std::io::Write;

use tonic::metadata::AsciiMetadataValue;
use tonic::transport::Endpoint;
use tonic::{Request, Status};
use tonic_types::StatusExt;
use vx::generate_service_client::GenerateServiceClient;
use vx::stream_generate_response::Event;
use vx::{GenerateRequest, Message, StreamGenerateRequest};

const MODEL: &str = "vx-sandbox-small";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    match generate_and_stream().await {
        Err(error) if reason_of(error.as_ref()) == "INSUFFICIENT_BALANCE" => {
            println!("Add credit to the account.");
            Ok(())
        }
        result => result,
    }
}

async fn generate_and_stream() -> Result<(), Box<dyn Error>> {
    // For a server with TLS, write https.
    let address = format!("http://{}", env::var("VX_HOST_AND_PORT")?);
    let channel = Endpoint::from_shared(address)?.connect().await?;
    let mut authorization: AsciiMetadataValue =
        format!("Bearer {}", env::var("VX_KEY")?).parse()?;
    authorization.set_sensitive(true);
    let mut service =
        GenerateServiceClient::with_interceptor(channel, move |mut request: Request<()>| {
            request
                .metadata_mut()
                .insert("authorization", authorization.clone());
            Ok(request)
        });
    let question = Message {
        role: "user".into(),
        content: Some("What is a ledger?".into()),
        ..Default::default()
    };

    let request = GenerateRequest {
        model: MODEL.into(),
        messages: vec![question.clone()],
        ..Default::default()
    };
    let reply = service.generate(request).await?.into_inner();
    println!("{}", reply.message.unwrap_or_default().content());

    let request = StreamGenerateRequest {
        model: MODEL.into(),
        messages: vec![question],
        ..Default::default()
    };
    let mut events = service.stream_generate(request).await?.into_inner();
    while let Some(response) = events.message().await? {
        match response.event {
            Some(Event::Delta(delta)) => print!("{}", delta.content),
            Some(Event::Done(done)) => println!("\n{}", done.usage.unwrap_or_default().cost),
            None => {}
        }
        std::io::stdout().flush()?;
    }
    Ok(())
}

/// The reason of the server. Empty if the error is not of the server.
fn reason_of(error: &(dyn Error + 'static)) -> String {
    let status = error.downcast_ref::<Status>();
    status
        .and_then(|status| status.get_details_error_info())
        .map(|info| info.reason)
        .unwrap_or_default()
}
