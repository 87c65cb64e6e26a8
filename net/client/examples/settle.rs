//! Appends one record and finds out about it if the outcome is not known:
//! `settle HOST:PORT CA.PEM BUCKET/KEY ID BODY`.

use nova_client::{Client, ClientConfig, ProducerConfig, Record, StreamName};
use std::error::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [star, ca, name, id, body] = &args[..] else {
        return Err("usage: settle HOST:PORT CA.PEM BUCKET/KEY ID BODY".into());
    };
    let name = StreamName::parse(name)?;
    let client = Client::connect(ClientConfig::new(star, ca))?;
    let producer = client.producer(name.clone(), ProducerConfig::default())?;
    // The id makes the record unlike all others, so that it can be looked for.
    let record = Record::new(body.clone()).with_header("id", id.clone());
    let result = producer.append(record.clone()).await;
    let placed = match result {
        Ok(placed) => placed,
        Err(error) => match error.ambiguity() {
            Some(ambiguity) => {
                client
                    .settle_append(&name, ambiguity, None, &[record])
                    .await?
            }
            None => return Err(error.into()),
        },
    };
    println!("durable at {}", placed.start.sequence);
    Ok(())
}
