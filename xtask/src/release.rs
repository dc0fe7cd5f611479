//! `cargo xtask release`: everything that a release consists of, in a folder. Nothing is published, and
//! nothing is fetched but tools that this machine lacks.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::Subcommand;
use sha2::{Digest as _, Sha256};

use crate::wheel::WheelOptions;
use crate::workspace::{self, Workspace};
use crate::{bundle, fuzz, wheel};

/// The two steps of a release, with a person's edit between them.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ReleaseStep {
    /// Write the version into Cargo.toml and Cargo.lock, and a draft into CHANGELOG.md: the subjects of all
    /// commits since the last tag.
    Prepare {
        /// The version, as `0.2.0`.
        version: String,
    },
    /// Build the wheels, the source package and the page, with their checksums and the notes of the release.
    Build {
        /// The folder; target/release-VERSION where none is named.
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// What a wheel is built for beside this machine, as `aarch64-unknown-linux-gnu`; may be given
        /// several times.
        #[arg(long, value_name = "TRIPLE")]
        target: Vec<String>,
    },
}

const MANIFEST: &str = "Cargo.toml";
const CHANGELOG: &str = "CHANGELOG.md";

/// A draft has this line until a person has written its sentences.
const DRAFT: &str = "<!-- draft -->";

/// The heading of a version has these words in place of its date until the release.
const UNRELEASED: &str = "not yet released";

/// Runs one of the two steps of a release.
pub(crate) fn run(workspace: &Workspace, step: &ReleaseStep) -> Result<()> {
    match step {
        ReleaseStep::Prepare { version } => prepare(workspace, version),
        ReleaseStep::Build { out, target } => build(workspace, out.as_deref(), target),
    }
}

fn prepare(workspace: &Workspace, version: &str) -> Result<()> {
    ensure!(is_version(version), "`{version}` is not a version: three numbers with dots between, as 0.2.0");
    ensure_clean(workspace)?;
    let tag = workspace.program("git").args(["describe", "--tags", "--abbrev=0"]).output()?;
    let range = match String::from_utf8_lossy(&tag.stdout).trim() {
        tag if !tag.is_empty() => format!("{tag}..HEAD"),
        _ => "HEAD".to_owned(),
    };
    let git = |arguments: &[&str]| workspace::read(workspace.program("git").args(arguments));
    let subjects = git(&["log", "--format=%s", "--no-merges", "--reverse", &range])?;
    let date = git(&["log", "-1", "--format=%cs"])?;
    edit(workspace, MANIFEST, |text| with_version(text, version))?;
    edit(workspace, CHANGELOG, |text| with_draft(text, version, date.trim(), &subjects))?;
    workspace::run(&mut workspace.cargo(["update", "--quiet", "--workspace", "--offline"]))?;
    println!("    make sentences of the draft in {CHANGELOG}, commit, and run `cargo xtask release build`");
    Ok(())
}

fn build(workspace: &Workspace, out: Option<&Path>, targets: &[String]) -> Result<()> {
    ensure_clean(workspace)?;
    let read = |name: &str| fs::read_to_string(workspace.root().join(name)).with_context(|| name.to_owned());
    let manifest = read(MANIFEST)?;
    let version = version_of(&manifest).context("Cargo.toml has no version")?;
    let changelog = read(CHANGELOG)?;
    ensure_dated(&changelog, version)?;
    let notes = notes_of(&changelog, version)?;
    let out = match out {
        // The path is made absolute, because the programs of this step run in another folder.
        Some(out) => std::path::absolute(out)?,
        None => workspace.root().join(format!("target/release-{version}")),
    };
    if out.exists() {
        bail!("{} exists: a file of another build would pass for one of this release", out.display());
    }
    fs::create_dir_all(&out)?;
    // A wheel that is linked against the glibc of this machine would refuse to install on an older system.
    let mut sdist = true;
    for target in std::iter::once(fuzz::host(workspace)?).chain(targets.iter().cloned()) {
        let options = WheelOptions { out: Some(out.clone()), sdist, target: Some(target), profile: None };
        wheel::build(workspace, &options)?;
        sdist = false;
    }
    let page = workspace.root().join("target/release-page");
    bundle::build_to(workspace, &page, None)?;
    let name = format!("blockyard-page-{version}.tar.gz");
    let mut tar = workspace.program("tar");
    // With these options the same files make the same archive.
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0", "-czf"]);
    workspace::run(tar.arg(out.join(name)).arg("-C").arg(&page).arg("."))?;
    fs::write(out.join("NOTES.md"), notes)?;
    let sums = checksums(&out)?;
    fs::write(out.join("SHA256SUMS"), &sums)?;
    print!("{sums}");
    println!("    the release is in {}; docs/release.md says how it is published", out.display());
    Ok(())
}

fn ensure_clean(workspace: &Workspace) -> Result<()> {
    let changed = workspace::read(workspace.program("git").args(["status", "--porcelain"]))?;
    ensure!(changed.is_empty(), "a release is of a commit; these files are in none:\n{changed}");
    Ok(())
}

fn edit(workspace: &Workspace, name: &str, change: impl FnOnce(&str) -> Result<String>) -> Result<()> {
    let path = workspace.root().join(name);
    let text = fs::read_to_string(&path).with_context(|| name.to_owned())?;
    fs::write(&path, change(&text).with_context(|| name.to_owned())?)?;
    Ok(())
}

fn is_version(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    parts.len() == 3
        && parts.iter().all(|part| part.parse::<u32>().is_ok_and(|number| number.to_string() == *part))
}

/// The line of the workspace's version: the first one.
fn version_line(manifest: &str) -> Option<&str> {
    manifest.lines().find(|line| line.starts_with("version = \""))
}

fn version_of(manifest: &str) -> Option<&str> {
    version_line(manifest)?.split('"').nth(1)
}

/// The manifest with another version of the workspace, and of the crates in it that have one beside their
/// folder.
fn with_version(manifest: &str, version: &str) -> Result<String> {
    let line = version_line(manifest).context("no version")?;
    let changed = format!("version = \"{version}\"");
    let manifest = manifest.replacen(line, &changed, 1);
    Ok(manifest.replace(&format!("{{ {line}, path = "), &format!("{{ {changed}, path = ")))
}

/// The changelog with a draft of the version's section before the sections of earlier versions.
fn with_draft(changelog: &str, version: &str, date: &str, subjects: &str) -> Result<String> {
    let heading = format!("## {version} ");
    ensure!(
        !changelog.contains(&heading),
        "{CHANGELOG} has a section about {version} already: put the date in its heading"
    );
    let place = changelog.find("\n## ").map_or(changelog.len(), |at| at.saturating_add(1));
    let (before, behind) = changelog.split_at(place);
    let mut draft = format!("{heading}({date})\n\n{DRAFT}\n");
    for subject in subjects.lines() {
        writeln!(draft, "- {subject}")?;
    }
    Ok(format!("{before}{draft}\n{behind}"))
}

/// The section of a version, without its heading.
fn notes_of(changelog: &str, version: &str) -> Result<String> {
    let heading = format!("## {version} ");
    let mut lines = changelog.lines().skip_while(|line| !line.starts_with(&heading));
    lines.next().with_context(|| format!("{CHANGELOG} says nothing about {version}"))?;
    let notes: Vec<&str> = lines.take_while(|line| !line.starts_with("## ")).collect();
    let notes = notes.join("\n").trim().to_owned();
    ensure!(!notes.contains(DRAFT), "the section about {version} in {CHANGELOG} is a draft");
    ensure!(!notes.is_empty(), "the section about {version} in {CHANGELOG} is empty");
    Ok(notes + "\n")
}

/// Refuses a version whose section has no date.
fn ensure_dated(changelog: &str, version: &str) -> Result<()> {
    let heading = format!("## {version} ({UNRELEASED})");
    ensure!(
        !changelog.lines().any(|line| line == heading),
        "the section about {version} in {CHANGELOG} has no date: put the date in the place of \"{UNRELEASED}\""
    );
    Ok(())
}

/// The checksums of the files of a folder, by name, as `sha256sum --check` reads them.
fn checksums(folder: &Path) -> Result<String> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.sort();
    let mut text = String::new();
    for path in paths {
        for byte in Sha256::digest(fs::read(&path)?) {
            write!(text, "{byte:02x}")?;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        writeln!(text, "  {name}")?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "# Changes\n\nWhat users meet.\n\n## 0.1.0 (2026-11-24)\n\nThe first one.\n";

    #[test]
    fn a_version_has_three_numbers() {
        assert!(is_version("0.1.0") && is_version("12.0.30"));
        for text in ["0.1", "v0.1.0", "0.1.0-rc1", "0.01.0", "0.1.0.0", ""] {
            assert!(!is_version(text), "{text}");
        }
    }

    #[test]
    fn the_manifest_gets_the_version_and_stays_what_it_was() {
        let text = "[workspace.package]\nversion = \"0.1.0\"\na = { version = \"0.1.0\", path = \"a\" }\n\n[x]\nversion = \"0.1.0\"\n";
        let changed = with_version(text, "0.2.0").unwrap();
        assert_eq!(version_of(&changed), Some("0.2.0"));
        assert_eq!(changed, text.replacen("0.1.0", "0.2.0", 2));
    }

    #[test]
    fn the_crates_that_others_may_use_have_the_version_of_the_workspace() {
        let own = fs::read_to_string(Workspace::find().root().join(MANIFEST)).unwrap();
        assert_eq!(version_of(&own), Some(env!("CARGO_PKG_VERSION")));
        let wrong: Vec<&str> = own
            .lines()
            .filter(|line| line.starts_with("blockyard-") && line.contains("{ version = "))
            .filter(|line| {
                !line.contains(concat!("{ version = \"", env!("CARGO_PKG_VERSION"), "\", path = "))
            })
            .collect();
        assert!(wrong.is_empty(), "{wrong:?}");
        for name in ["rules", "record", "allocator", "pytorch", "answers"] {
            assert!(own.contains(&format!("blockyard-{name} = {{ version = ")), "{name}");
        }
    }

    #[test]
    fn each_package_has_the_licenses() {
        let workspace = Workspace::find();
        let read = |path: &str| fs::read_to_string(workspace.root().join(path)).unwrap_or_default();
        let names = |folder: &str| -> Vec<String> {
            let entries = fs::read_dir(workspace.root().join(folder)).unwrap();
            entries
                .map(|entry| format!("{folder}/{}", entry.unwrap().file_name().to_string_lossy()))
                .collect()
        };
        // The wheel is a package of Python's registry; its manifest for cargo is not published.
        let is_published = |folder: &String| {
            folder.ends_with("/wheel") || read(&format!("{folder}/Cargo.toml")).contains("publish = true")
        };
        let groups = names("crates").into_iter();
        let published: Vec<String> = groups
            .filter(|group| workspace.root().join(group).is_dir())
            .flat_map(|group| names(&group))
            .filter(is_published)
            .collect();
        // Seven crates, and the wheel.
        assert_eq!(published.len(), 8, "{published:?}");
        for name in published {
            for license in ["LICENSE-APACHE", "LICENSE-MIT"] {
                let own = read(&format!("{name}/{license}"));
                assert!(!own.is_empty() && own == read(license), "{name} has no {license}");
            }
        }
    }

    #[test]
    fn a_draft_comes_before_earlier_versions_and_is_no_release() {
        let drafted = with_draft(LOG, "0.2.0", "2027-01-02", "cli: faster\nlab: right").unwrap();
        let place = |text: &str| drafted.find(text).unwrap();
        assert!(place("What users meet") < place("## 0.2.0 (2027-01-02)"));
        assert!(place("- cli: faster\n- lab: right\n") < place("## 0.1.0"));
        assert!(notes_of(&drafted, "0.2.0").unwrap_err().to_string().contains("draft"));
        assert_eq!(notes_of(&drafted.replace(DRAFT, ""), "0.2.0").unwrap(), "- cli: faster\n- lab: right\n");
        assert_eq!(notes_of(&drafted, "0.1.0").unwrap(), "The first one.\n");
        assert!(with_draft(&drafted, "0.2.0", "2027-01-02", "").is_err());
        assert!(
            notes_of(LOG, "0.3.0").is_err() && notes_of("## 0.3.0 (x)\n\n## 0.2.0 (x)", "0.3.0").is_err()
        );
    }

    #[test]
    fn a_version_without_a_date_is_not_released() {
        assert!(ensure_dated(LOG, "0.1.0").is_ok());
        let undated = LOG.replace("2026-11-24", UNRELEASED);
        assert!(ensure_dated(&undated, "0.1.0").unwrap_err().to_string().contains("has no date"));
    }

    #[test]
    fn the_changelog_says_something_about_the_version_of_the_repository() {
        let log = fs::read_to_string(Workspace::find().root().join(CHANGELOG)).unwrap();
        assert!(notes_of(&log, env!("CARGO_PKG_VERSION")).is_ok());
    }

    #[test]
    fn checksums_are_those_of_sha256sum() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("b"), "abc").unwrap();
        fs::write(folder.path().join("a"), "").unwrap();
        assert_eq!(
            checksums(folder.path()).unwrap(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a\n\
             ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  b\n"
        );
    }
}
