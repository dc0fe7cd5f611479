//! The steps on Linux, in the order that each needs: what must read `/proc` comes before the files are taken,
//! and the system calls are taken last.

mod calls;
mod files;
mod limits;

use std::error::Error;
use std::fs;
use std::io;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, secure_computing_mode,
    set_capabilities, set_no_new_privs,
};

use crate::{ConfineError, Confinement};

pub(crate) fn confine(confinement: &Confinement) -> Result<(), ConfineError> {
    check()?;
    check_threads()?;
    close_descriptors(&confinement.kept_descriptors).map_err(step("close the open descriptors"))?;
    limits::set(confinement)?;
    // Landlock and the list of system calls ask this of a user who is not root.
    set_no_new_privs(true).map_err(step("give up new rights"))?;
    // Nobody of the same user may trace the process, and it leaves no dump.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(step("forbid dumps"))?;
    files::restrict(confinement)?;
    drop_capabilities().map_err(step("drop the capabilities"))?;
    calls::restrict(!confinement.writable.is_empty()).map_err(step("restrict the system calls"))
}

pub(crate) fn check() -> Result<(), ConfineError> {
    files::check()?;
    secure_computing_mode().map(drop).map_err(|source| ConfineError::Kernel {
        missing: "this kernel has no filter of system calls (seccomp)",
        source: source.into(),
    })
}

/// An error of that step.
fn step<E: Into<Box<dyn Error + Send + Sync>>>(step: &'static str) -> impl FnOnce(E) -> ConfineError {
    move |source| ConfineError::Step { step, source: source.into() }
}

fn check_threads() -> Result<(), ConfineError> {
    let count = fs::read_dir("/proc/self/task").map_err(step("count the threads in /proc"))?.count();
    if count == 1 { Ok(()) } else { Err(ConfineError::Threads { count }) }
}

/// Closes all descriptors but the standard three and `kept`: a socket or a file that the parent left open would
/// be a way out, because the rules are about what is opened.
fn close_descriptors(kept: &[i32]) -> io::Result<()> {
    let number =
        |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_str().and_then(|name| name.parse().ok()));
    // Collected first: while the folder is read, it is a descriptor itself.
    let open: Vec<Option<i32>> = fs::read_dir("/proc/self/fd")?.map(number).collect::<io::Result<_>>()?;
    for descriptor in
        open.into_iter().flatten().filter(|descriptor| *descriptor > 2 && !kept.contains(descriptor))
    {
        // The folder itself was closed before: that error does not count.
        // SAFETY: no other thread uses the descriptor at this moment, because there is none. An owner that uses it
        // later gets an error of the system or, where the number was given again, a file of this process: nothing
        // that the confined program could not reach as well.
        #[expect(unsafe_code, reason = "the owners of these descriptors are not known")]
        unsafe {
            libc::close(descriptor);
        }
    }
    Ok(())
}

/// Root can overrule limits and permissions by its capabilities. The one for reading stays, because a teacher may
/// grade as root what belongs to students; Landlock holds for root too.
fn drop_capabilities() -> rustix::io::Result<()> {
    clear_ambient_capability_set()?;
    let kept = capabilities(None)?.permitted & CapabilitySet::DAC_READ_SEARCH;
    set_capabilities(
        None,
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() },
    )
}
