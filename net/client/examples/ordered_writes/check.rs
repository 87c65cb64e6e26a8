//! The check: reads every entity and compares it with what was issued and answered.

use crate::Failure;
use crate::route::Run;
use crate::writer::body;
use nova_client::{Client, ReadItem, StreamName, read_from};

/// Findings that are told; a broken run has one for nearly every record.
pub const FINDINGS_MAX: usize = 10;

/// What is wrong; empty if every update is there once, in order, where its answers said.
pub async fn check(
    client: &Client,
    names: &[StreamName],
    run: &Run,
) -> Result<Vec<String>, Failure> {
    let mut findings = run.findings.clone();
    for ((number, name), entity) in (0..).zip(names).zip(&run.entities) {
        let bodies = read_all(client, name).await?;
        let issued = entity.places.len();
        if bodies.len() != issued {
            let stored = bodies.len();
            findings.push(format!(
                "entity {number}: {stored} records for {issued} updates"
            ));
        }
        for (update, place) in (0..).zip(&entity.places) {
            let expected = body(number, update);
            let found = bodies.get(update as usize);
            if found != Some(&expected) {
                findings.push(format!("entity {number} at {update}: {found:?}"));
            }
            let is_true = place.is_none_or(|at| bodies.get(at as usize) == Some(&expected));
            if !is_true {
                findings.push(format!(
                    "entity {number}: update {update} is not at {place:?}"
                ));
            }
        }
    }
    findings.truncate(FINDINGS_MAX);
    Ok(findings)
}

async fn read_all(client: &Client, name: &StreamName) -> Result<Vec<String>, Failure> {
    let mut bodies = Vec::new();
    let mut reader = client.read(read_from(name.clone(), 0)).await?;
    while let Some(item) = reader.next_batch().await? {
        if let ReadItem::Batch(batch) = item {
            batch.for_each(|_, record| {
                bodies.push(String::from_utf8_lossy(record.body()).into_owned());
            });
        }
    }
    Ok(bodies)
}
