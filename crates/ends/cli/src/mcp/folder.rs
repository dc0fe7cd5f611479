//! The folder whose files a server reads, and no others.

use std::path::{Component, Path, PathBuf};

use anyhow::{Context, bail};

/// A folder, as it was named and as the system names it without symbolic links.
#[derive(Debug)]
pub(super) struct Folder {
    named: PathBuf,
    real: PathBuf,
}

impl Folder {
    /// The folder of a path.
    pub(super) fn new(path: &Path) -> anyhow::Result<Self> {
        let open = || {
            let real = path.canonicalize()?;
            std::fs::read_dir(&real)?;
            Ok::<_, std::io::Error>(Self { named: std::path::absolute(path)?, real })
        };
        open().with_context(|| format!("the folder {}", path.display()))
    }

    /// The folder without symbolic links.
    pub(super) fn path(&self) -> &Path {
        &self.real
    }

    /// The path of a file, relative to the folder and without symbolic links. The file is below the folder.
    pub(super) fn find(&self, name: &str) -> anyhow::Result<PathBuf> {
        let asked = self.real.join(name);
        // What a path outside names stays unknown, also whether there is a file.
        let written = without_dots(&asked);
        if !written.starts_with(&self.real) && !written.starts_with(&self.named) {
            return self.refuse(name);
        }
        let Ok(found) = asked.canonicalize() else {
            bail!("`{name}`: there is no such file below {}", self.real.display());
        };
        let Ok(inside) = found.strip_prefix(&self.real) else { return self.refuse(name) };
        if !found.is_file() {
            bail!("`{name}` is not a file");
        }
        // Commands read such a name as an option, or as standard input.
        if inside.as_os_str().as_encoded_bytes().starts_with(b"-") {
            bail!("`{name}`: files whose names begin with `-` are not read");
        }
        Ok(inside.to_owned())
    }

    fn refuse(&self, name: &str) -> anyhow::Result<PathBuf> {
        bail!("`{name}` is not below {}, the only folder that this server reads", self.real.display())
    }
}

/// The path without `.` and `..`, as its text says.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_below_the_folder_are_found_and_no_others() {
        let outside = tempfile::tempdir().unwrap();
        let folder = outside.path().join("folder");
        std::fs::create_dir_all(folder.join("in")).unwrap();
        for name in ["secret", "folder/in/file", "folder/-"] {
            std::fs::write(outside.path().join(name), "").unwrap();
        }
        let opened = Folder::new(&folder).unwrap();
        let found = |name: &str| opened.find(name).map_err(|error| error.to_string());
        assert_eq!(found("in/file"), Ok("in/file".into()));
        assert_eq!(found("./in/../in/file"), Ok("in/file".into()));
        assert_eq!(found(folder.join("in/file").to_str().unwrap()), Ok("in/file".into()));
        let secret = outside.path().join("secret");
        for name in ["../secret", "../nothing", "in/../../secret", "/etc/passwd", secret.to_str().unwrap()] {
            let error = found(name).unwrap_err();
            assert!(error.starts_with(&format!("`{name}` is not below ")), "{error}");
        }
        for (name, words) in [
            ("nothing", "there is no such file below"),
            ("in", "is not a file"),
            ("", "is not a file"),
            ("-", "begin with `-`"),
        ] {
            assert!(found(name).unwrap_err().contains(words), "{name}: {:?}", found(name));
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::symlink;
            symlink(&secret, folder.join("link")).unwrap();
            symlink(outside.path(), folder.join("up")).unwrap();
            symlink(folder.join("in"), folder.join("within")).unwrap();
            for name in ["link", "up/secret"] {
                assert!(found(name).unwrap_err().contains("is not below"), "{name}");
            }
            assert_eq!(found("within/file"), Ok("in/file".into()));
            symlink(&folder, outside.path().join("other")).unwrap();
            let other = outside.path().join("other");
            let named = other.join("in/file");
            assert_eq!(
                Folder::new(&other).unwrap().find(named.to_str().unwrap()).unwrap(),
                Path::new("in/file")
            );
        }
        assert!(Folder::new(&secret).is_err());
    }
}
