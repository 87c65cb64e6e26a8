//! The known name that somebody may have meant.

/// The known name that takes the fewest changes, if those are at most a third of its letters.
pub(crate) fn nearest<'a>(
    meant: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let changes = |known: &str| distance(meant.as_bytes(), known.as_bytes());
    let best = known.into_iter().min_by_key(|known| changes(known))?;
    (changes(best) <= best.len().div_ceil(3)).then_some(best)
}

/// How many letters must be put in, left out or replaced (Levenshtein 1966).
fn distance(from: &[u8], to: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
#[path = "nearest_tests.rs"]
mod tests;
