//! What PyTorch gives cuBLAS and cuBLASLt to work in, by the variables of the environment.
//!
//! Source: products of matrices under each variable on PyTorch's own builds of all releases, without a GPU
//! (`tests/fixtures/releases/blas_variables.txt`).

use crate::{Bytes, Release};

/// How long PyTorch keeps the workspaces of cuBLAS and cuBLASLt. Sizes are those of the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlasWorkspaces {
    /// One workspace of each library, for each thread, device and stream, kept until the process ends.
    /// PyTorch allocates cuBLASLt's together with cuBLAS's.
    Kept,
    /// cuBLAS's is kept; each call of cuBLASLt allocates a workspace and frees it.
    LtForEachCall,
    /// One workspace for both libraries, kept until the process ends.
    Shared,
    /// Each call allocates a workspace and frees it when the kernels of the call are launched (pull request
    /// 194311).
    ForEachCall,
}

/// The variables of the environment that PyTorch reads before its first product of matrices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlasVariables {
    /// `CUBLAS_WORKSPACE_CONFIG`.
    size: Option<Bytes>,
    /// `CUBLASLT_WORKSPACE_SIZE`.
    lt_size: Option<Bytes>,
    /// `TORCH_CUBLASLT_UNIFIED_WORKSPACE`.
    is_unified: Option<bool>,
    /// `TORCH_CUBLAS_WORKSPACE_CACHE`, since 2.15.
    is_cached: Option<bool>,
}

impl BlasVariables {
    /// The names of the variables.
    pub const NAMES: [&str; 4] = [
        "CUBLAS_WORKSPACE_CONFIG",
        "CUBLASLT_WORKSPACE_SIZE",
        "TORCH_CUBLASLT_UNIFIED_WORKSPACE",
        "TORCH_CUBLAS_WORKSPACE_CACHE",
    ];

    /// Sets a variable. A text that PyTorch does not understand has no effect: the default of the variable
    /// holds.
    ///
    /// Returns whether the text was understood; also `false` if `name` is none of [`Self::NAMES`].
    pub fn set(&mut self, name: &str, text: &str) -> bool {
        match name {
            "CUBLAS_WORKSPACE_CONFIG" => assign(&mut self.size, pairs(text)),
            "CUBLASLT_WORKSPACE_SIZE" => assign(&mut self.lt_size, leading_number(text).map(kib)),
            "TORCH_CUBLASLT_UNIFIED_WORKSPACE" => assign(&mut self.is_unified, flag(text)),
            "TORCH_CUBLAS_WORKSPACE_CACHE" => assign(&mut self.is_cached, flag(text)),
            _ => false,
        }
    }

    /// How long workspaces are kept.
    #[must_use]
    pub fn workspaces(&self, release: Release) -> BlasWorkspaces {
        let is_kept = match release.minor() {
            ..=11 => {
                return match self.is_unified {
                    Some(true) if release.minor() >= 8 => BlasWorkspaces::Shared,
                    _ if release.minor() <= 8 => BlasWorkspaces::LtForEachCall,
                    _ => BlasWorkspaces::Kept,
                };
            }
            12..=14 => true,
            _ => self.is_cached == Some(true),
        };
        match (is_kept, self.is_unified) {
            (false, _) => BlasWorkspaces::ForEachCall,
            (true, Some(false)) => BlasWorkspaces::Kept,
            (true, _) => BlasWorkspaces::Shared,
        }
    }

    /// Bytes of cuBLAS's workspace, of which a GPU takes `default` without a variable. With 0 bytes nothing
    /// is allocated.
    #[must_use]
    pub fn cublas_size(&self, default: Bytes) -> Bytes {
        self.size.unwrap_or(default)
    }

    /// Bytes of cuBLASLt's own workspace, which 2.11 cuts to those of cuBLAS's (`cublas_size`) unless a
    /// variable keeps both apart. With 0 bytes nothing is allocated.
    #[must_use]
    pub fn cublaslt_size(&self, release: Release, default: Bytes, cublas_size: Bytes) -> Bytes {
        let own = self.lt_size.unwrap_or(default);
        if release.minor() == 11 && self.is_unified.is_none() { own.min(cublas_size) } else { own }
    }
}

fn assign<T>(to: &mut Option<T>, value: Option<T>) -> bool {
    let is_understood = value.is_some();
    *to = value;
    is_understood
}

fn kib(number: u64) -> Bytes {
    Bytes::new(number.saturating_mul(1024))
}

/// The bytes of all `:SIZE:COUNT` (sizes in KiB) at any place in a text.
fn pairs(text: &str) -> Option<Bytes> {
    let mut total: Option<u64> = None;
    let mut rest = text;
    while let Some(at) = rest.find(':') {
        rest = rest.get(at + 1..)?;
        let Some((size, after)) = split_leading_number(rest) else { continue };
        let Some((count, after)) = after.strip_prefix(':').and_then(split_leading_number) else { continue };
        total = Some(total.unwrap_or(0).saturating_add(size.saturating_mul(1024).saturating_mul(count)));
        rest = after;
    }
    total.map(Bytes::new)
}

/// The number that a text begins with, and what follows.
fn split_leading_number(text: &str) -> Option<(u64, &str)> {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at_checked(end)?;
    Some((number.parse().ok()?, rest))
}

/// The number at the start of a text, as C++ reads it: characters after the number are ignored. `None` for a
/// negative number.
fn leading_number(text: &str) -> Option<u64> {
    let text = text.trim_start();
    split_leading_number(text.strip_prefix('+').unwrap_or(text)).map(|(number, _)| number)
}

fn flag(text: &str) -> Option<bool> {
    match text {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_found_wherever_they_stand() {
        let cases = [
            (":16:8", Some(128)),
            ("a:16:8x", Some(128)),
            (":4096:2:16:8", Some(8_320)),
            (":0:0", Some(0)),
            ("rubbish", None),
            (":16", None),
            ("::16:8", Some(128)),
        ];
        for (text, size) in cases {
            assert_eq!(pairs(text), size.map(kib), "{text}");
        }
    }

    #[test]
    fn what_is_not_understood_changes_nothing() {
        let mut variables = BlasVariables::default();
        assert!(variables.set("CUBLASLT_WORKSPACE_SIZE", "12x"));
        assert_eq!(variables.cublaslt_size(Release::V2_15, kib(1_024), kib(8)), kib(12));
        assert!(!variables.set("CUBLASLT_WORKSPACE_SIZE", "junk"));
        assert!(!variables.set("TORCH_CUBLAS_WORKSPACE_CACHE", "yes"));
        assert!(!variables.set("PATH", "1"));
        assert_eq!(variables, BlasVariables::default());
    }
}
