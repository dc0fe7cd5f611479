//! The PyTorch that is installed for a Python.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::DryRunError;
use crate::symbols::{Imports, libraries_in};

/// An installed PyTorch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torch {
    /// The folder of the package.
    pub folder: PathBuf,
    /// The version of PyTorch: "2.11.0+cu130".
    pub version: String,
    /// CUDA's version as `cudaRuntimeGetVersion` counts: 13000 for 13.0.
    pub cuda: u32,
    /// The version of cuDNN for which PyTorch was built, as `cudnnGetVersion` counts: 91900 for 9.19.0;
    /// `None` if the package does not say. PyTorch refuses an older cuDNN.
    pub cudnn: Option<u32>,
    /// The version of the Python that found the package: "3.12.3"; empty if it is not known.
    pub python: String,
}

/// Says where the package is, without loading it, the Python's version, and the cuDNN that the package asks
/// for.
const FIND: &str = "import importlib.metadata as m, importlib.util as u, platform\ns = u.find_spec('torch')\n\
                    print(s.submodule_search_locations[0] if s else '')\nprint(platform.python_version())\n\
                    try: wanted = m.requires('torch') or []\nexcept m.PackageNotFoundError: wanted = []\n\
                    print(next((r for r in wanted if r.startswith('nvidia-cudnn')), ''))";

impl Torch {
    /// The PyTorch of this Python.
    ///
    /// # Errors
    ///
    /// Python does not start, has no PyTorch, or has a PyTorch that was built without CUDA: each error says
    /// what to install.
    pub fn find(python: &str) -> Result<Self, DryRunError> {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            return Err(DryRunError::System);
        }
        let output = Command::new(python)
            .args(["-c", FIND])
            .stderr(Stdio::null())
            .output()
            .map_err(|error| DryRunError::NoPython { python: python.to_owned(), error })?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut lines = text.lines().map(|line| line.trim().to_owned());
        let mut line = || lines.next().unwrap_or_default();
        let (folder, release, cudnn) = (line(), line(), line());
        if folder.is_empty() || !output.status.success() {
            return Err(DryRunError::NoTorch { python: python.to_owned() });
        }
        let folder = PathBuf::from(folder);
        let file = folder.join("version.py");
        let text = fs::read_to_string(&file).map_err(DryRunError::file(&file))?;
        let version = value(&text, "__version__").unwrap_or_default();
        let cuda = value(&text, "cuda").and_then(|text| cuda_number(&text));
        match cuda {
            Some(cuda) => Ok(Self { folder, version, cuda, cudnn: cudnn_number(&cudnn), python: release }),
            None => Err(DryRunError::NoCuda { path: folder, version }),
        }
    }

    /// All shared libraries of the package.
    pub(crate) fn libraries(&self) -> Result<Vec<PathBuf>, DryRunError> {
        let mut all = libraries_in(&self.folder.join("lib"))?;
        all.extend(libraries_in(&self.folder)?);
        Ok(all)
    }

    /// The functions and libraries of CUDA that the package needs.
    ///
    /// # Errors
    ///
    /// A library that cannot be read.
    pub fn imports(&self) -> Result<Imports, DryRunError> {
        Imports::of(&self.libraries()?)
    }

    /// The release as two numbers.
    pub fn version_pair(&self) -> (u32, u32) {
        let mut numbers = self.version.split(['.', '+']).map(|number| number.parse().unwrap_or(0));
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    }

    /// The folder of the package, as a path.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// The value that PyTorch's `version.py` gives a name; `None` where the file has no such name.
fn value(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (left, right) = line.split_once('=')?;
        let left = left.split(':').next().unwrap_or(left).trim();
        let right = right.trim().trim_matches(['\'', '"']);
        (left == name && right != "None").then(|| right.to_owned())
    })
}

fn cuda_number(text: &str) -> Option<u32> {
    let (major, minor) = text.split_once('.')?;
    let minor = minor.split('.').next().unwrap_or("0");
    major.parse::<u32>().ok()?.checked_mul(1000)?.checked_add(minor.parse::<u32>().ok()?.checked_mul(10)?)
}

/// The version in a requirement: 91900 for `nvidia-cudnn-cu13==9.19.0.56; platform_system == "Linux"`.
fn cudnn_number(requirement: &str) -> Option<u32> {
    let (_, version) = requirement.split_once("==")?;
    let mut numbers = version.split(['.', ';', ' ']).map_while(|number| number.parse::<u32>().ok());
    let (major, minor, patch) = (numbers.next()?, numbers.next()?, numbers.next().unwrap_or(0));
    major.checked_mul(10_000)?.checked_add(minor.checked_mul(100)?)?.checked_add(patch)
}

#[cfg(test)]
mod tests {
    use super::{cuda_number, cudnn_number, value};

    #[test]
    fn the_cudnn_of_a_requirement_is_read() {
        let text = "nvidia-cudnn-cu13==9.26.1.51; platform_system == \"Linux\"";
        assert_eq!(cudnn_number(text), Some(92_601));
        assert_eq!(cudnn_number("nvidia-cudnn-cu12==9.10"), Some(91_000));
        for text in
            ["", "nvidia-cudnn-cu13", "nvidia-cudnn-cu13==9", "nvidia-cudnn-cu13==a.b", "==4294967295.1"]
        {
            assert_eq!(cudnn_number(text), None, "{text}");
        }
    }

    #[test]
    fn the_version_file_is_read() {
        let text = "from typing import Optional\n\n__version__ = '2.11.0+cu130'\ndebug = False\ncuda: Optional[str] = '13.0'\nhip = None\n";
        assert_eq!(value(text, "__version__").as_deref(), Some("2.11.0+cu130"));
        assert_eq!(value(text, "cuda").and_then(|text| cuda_number(&text)), Some(13_000));
        assert_eq!(value(text, "hip"), None);
        assert_eq!(cuda_number("12.8"), Some(12_080));
    }
}
