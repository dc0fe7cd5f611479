//! Which files may be opened: rules of Landlock.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, make_bitflags,
};

use super::step;
use crate::{ConfineError, Confinement};

/// The first Landlock that keeps a file from being cut off, in Linux 6.2.
const REQUIRED: ABI = ABI::V3;
/// The newest Landlock whose rules are used where the kernel knows them.
const NEWEST: ABI = ABI::V6;

/// What the C library and Python read late: shared libraries of modules, the time zone, random bytes. These files
/// belong to the system and hold nothing of a person.
const SYSTEM: &[&str] = &[
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/usr/share/zoneinfo",
    "/dev/urandom",
];
const NULL: &str = "/dev/null";

const READ: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | ReadDir});
/// Not links, pipes, sockets and devices: what reads the folder afterwards has rights that the program has not, and
/// must not be led elsewhere or be made to wait.
const WRITE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{
    ReadFile | ReadDir | WriteFile | Truncate | MakeReg | MakeDir | RemoveFile | RemoveDir | Refer
});

/// Whether the kernel knows the rules that must hold.
pub(super) fn check() -> Result<(), ConfineError> {
    rules().map(drop).map_err(|source| ConfineError::Kernel {
        missing: "this kernel has no Landlock, or one older than that of Linux 6.2, or has it turned off",
        source: source.into(),
    })
}

/// Restricts the files, and where the kernel can, connections, signals and devices.
pub(super) fn restrict(confinement: &Confinement) -> Result<(), ConfineError> {
    let mut rules = rules().map_err(step("make rules for files"))?;
    for path in SYSTEM {
        rules = allow_if_there(rules, Path::new(path), READ)?;
    }
    rules = allow_if_there(rules, Path::new(NULL), WRITE)?;
    for path in &confinement.readable {
        rules = allow(rules, path, READ)?;
    }
    for path in &confinement.writable {
        rules = allow(rules, path, WRITE)?;
    }
    let status = rules.restrict_self().map_err(step("restrict the files"))?;
    // In part: an older kernel left out what is not required.
    match status.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced if status.no_new_privs => Ok(()),
        _ => Err(step("restrict the files")("the kernel did not enforce the rules")),
    }
}

/// Rules that allow no file yet. What is not required is left out on an older kernel: connections and signals are
/// refused by the list of system calls on each.
fn rules() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(REQUIRED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::IoctlDev)?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .set_compatibility(CompatLevel::HardRequirement)
        .create()
}

fn allow_if_there(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, ConfineError> {
    match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(rules),
        _ => allow(rules, path, access),
    }
}

fn allow(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, ConfineError> {
    let cannot = |source| ConfineError::Path { path: path.to_owned(), source };
    let is_folder = fs::metadata(path).map_err(|source| cannot(source.into()))?.is_dir();
    let descriptor = PathFd::new(path).map_err(|source| cannot(source.into()))?;
    // The kernel refuses rules about the content of a folder where the path is a file.
    let access = if is_folder { access } else { access & AccessFs::from_file(REQUIRED) };
    rules.add_rule(PathBeneath::new(descriptor, access)).map_err(|source| cannot(source.into()))
}
