//! The Python that runs programs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::RunError;

/// The oldest Python that the extension and `lib` work with.
const OLDEST: (u32, u32) = (3, 10);

/// Names on the path, in the order in which they are tried.
const NAMES: [&str; 2] = ["python3", "python"];

/// An installed Python.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpreter {
    /// The command that starts it.
    pub command: String,
    /// Its version, such as "3.12.3".
    pub version: String,
    /// The folders of its own modules and of installed packages.
    pub folders: Vec<PathBuf>,
}

/// The interpreters that this process has found, by the command that was asked for.
static FOUND: Mutex<BTreeMap<String, Interpreter>> = Mutex::new(BTreeMap::new());

/// Prints the interpreter's file, its version, and the folders that the interpreter reads modules from.
const ASK: &str = "import sys, platform; print(sys.executable); print(platform.python_version()); \
                   print('\\n'.join(p for p in sys.path if p))";

impl Interpreter {
    /// The Python of a command; without one, that of the variable `BLOCKYARD_PYTHON`, or the first of
    /// `python3` and `python` on the path.
    ///
    /// # Errors
    ///
    /// [`RunError::NoPython`] where none starts, [`RunError::OldPython`] where it is older than 3.10.
    pub fn find(command: Option<&str>) -> Result<Self, RunError> {
        let variable = std::env::var("BLOCKYARD_PYTHON").ok();
        let named = command.or(variable.as_deref());
        let key = named.unwrap_or_default().to_owned();
        let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = found.get(&key) {
            return Ok(known.clone());
        }
        let commands: Vec<&str> = named.map_or_else(|| NAMES.to_vec(), |name| vec![name]);
        let Some(text) = commands.iter().find_map(|name| ask(name)) else {
            return Err(RunError::NoPython(commands.join(" or ")));
        };
        let mut lines = text.lines().map(str::trim);
        let command = lines.next().unwrap_or_default().to_owned();
        let version = lines.next().unwrap_or_default().to_owned();
        let mut numbers = version.split('.').map_while(|number| number.parse::<u32>().ok());
        if (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) < OLDEST {
            return Err(RunError::OldPython { command, version });
        }
        let interpreter = Self { command, version, folders: lines.map(PathBuf::from).collect() };
        found.insert(key, interpreter.clone());
        Ok(interpreter)
    }
}

impl Interpreter {
    /// A Python whose rules are those of the Python that made the recordings, 3.12.3, except for what
    /// [`ProgramSettings::has_rules_of_recordings`](crate::ProgramSettings::has_rules_of_recordings) changes:
    /// Python 3.12 or 3.13. Before 3.12, arguments and comprehensions live longer. `None` where none is found.
    pub fn of_recordings() -> Option<Self> {
        // A command that does not start takes its time to say so.
        static RECORDED: OnceLock<Option<Interpreter>> = OnceLock::new();
        RECORDED.get_or_init(Self::find_of_recordings).clone()
    }

    fn find_of_recordings() -> Option<Self> {
        let names = ["python3.12", "python3.13", "python3"].map(str::to_owned);
        let variable = std::env::var("BLOCKYARD_PYTHON").ok();
        let commands = variable.into_iter().chain(pyenv_commands()).chain(names);
        let mut found = commands.filter_map(|command| Self::find(Some(&command)).ok());
        found.find(|python| python.version.starts_with("3.12.") || python.version.starts_with("3.13."))
    }
}

/// The commands of the interpreters that pyenv has installed, which its own commands hide unless they are chosen.
pub fn pyenv_commands() -> impl Iterator<Item = String> {
    let root = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let root = root.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".pyenv")));
    let versions = root.and_then(|root| std::fs::read_dir(root.join("versions")).ok());
    let mut paths: Vec<PathBuf> =
        versions.into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths.into_iter().map(|path| path.join("bin/python3").display().to_string())
}

/// The answer of the interpreter about itself; `None` if it does not start.
fn ask(name: &str) -> Option<String> {
    let output = Command::new(name).args(["-c", ASK]).stderr(Stdio::null()).stdin(Stdio::null()).output();
    let output = output.ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}
