//! Prints a stream from a sequence number on and follows it: `follow HOST:PORT CA.PEM BUCKET/KEY
//! [START]`.

use nova_client::{Client, ClientConfig, ReadItem, StreamName, read_from};
use std::error::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(star), Some(ca), Some(name)) = (args.next(), args.next(), args.next()) else {
        return Err("usage: follow HOST:PORT CA.PEM BUCKET/KEY [START]".into());
    };
    let start = args.next().map_or(Ok(0), |start| start.parse())?;
    let client = Client::connect(ClientConfig::new(star, ca))?;
    let mut open = read_from(StreamName::parse(&name)?, start);
    open.follow = true;
    let mut reader = client.read(open).await?;
    while let Some(item) = reader.next_batch().await? {
        match item {
            ReadItem::Batch(batch) => batch.for_each(|at, record| {
                println!(
                    "{}\t{}",
                    at.sequence,
                    String::from_utf8_lossy(record.body())
                );
            }),
            ReadItem::CaughtUp(tail) => eprintln!("nothing behind {} yet", tail.sequence),
        }
    }
    Ok(())
}
