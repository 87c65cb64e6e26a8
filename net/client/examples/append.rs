//! Appends lines of standard input to a stream: `append HOST:PORT CA.PEM BUCKET/KEY < FILE`.
//!
//! Lines ride together while the ones before them are on their way; the exit code says whether
//! all of them are durable.

use nova_client::{
    BucketSettings, Client, ClientConfig, ProducerConfig, Record, StreamName, StreamSettings,
};
use std::error::Error;
use std::io::BufRead;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(star), Some(ca), Some(name)) = (args.next(), args.next(), args.next()) else {
        return Err("usage: append HOST:PORT CA.PEM BUCKET/KEY < FILE".into());
    };
    let name = StreamName::parse(&name)?;
    let client = Client::connect(ClientConfig::new(star, ca))?;
    client
        .ensure_bucket(name.bucket.clone(), BucketSettings::default())
        .await?;
    client
        .ensure_stream(name.clone(), StreamSettings::default())
        .await?;
    let producer = client.producer(name.clone(), ProducerConfig::default())?;
    let mut last = None;
    for line in std::io::stdin().lock().lines() {
        last = Some(producer.append_async(Record::new(line?)).await?);
    }
    producer.close().await?;
    if let Some(last) = last {
        println!("{name} ends at {}", last.await?.end.sequence);
    }
    client.close().await;
    Ok(())
}
