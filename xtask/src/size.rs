//! The size budget of the page: what a first visitor downloads.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result, bail};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::bundle::files_below;
use crate::workspace::Workspace;

/// What the first load may cost, in bytes after gzip.
const BUDGET: u64 = 700_000;

/// Prints every file of `dist/` with its size after gzip and fails if they cost more than the budget together.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let dist = workspace.dist();
    let mut total = 0;
    println!("{:<44} {:>10} {:>10}", "file", "bytes", "gzip");
    for name in files_below(&dist).context("there is no page: run `cargo xtask build`")? {
        let bytes = std::fs::read(dist.join(&name))?;
        let packed = packed_size(&name, &bytes)?;
        println!("{:<44} {:>10} {packed:>10}", name.display(), bytes.len());
        total += packed;
    }
    println!("{:<44} {:>10} {total:>10} of {BUDGET}", "all", "");
    if total > BUDGET {
        bail!("the page costs {total} bytes of gzip, {} more than its budget", total - BUDGET);
    }
    Ok(())
}

/// What `bytes` cost on the way; a file that is packed already costs its length.
fn packed_size(name: &Path, bytes: &[u8]) -> Result<u64> {
    if name.extension().is_some_and(|extension| extension == "gz") {
        return Ok(bytes.len() as u64);
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_already_is_not_packed_again() {
        let zeros = vec![0; 100_000];
        assert!(packed_size(Path::new("zeros.bin"), &zeros).unwrap() < 1_000);
        assert_eq!(packed_size(Path::new("zeros.jsonl.gz"), &zeros).unwrap(), 100_000);
    }
}
