//! What any program does, and what works in a confined process.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::attempts::call;
use super::scenarios::Surroundings;

type Act = (&'static str, fn(&Surroundings) -> io::Result<()>);

pub(crate) const ORDINARY: &[Act] = &[
    ("read a file inside", |place| is(fs::read_to_string(place.inside.join("file"))? == "inside")),
    ("list a folder inside", |place| is(fs::read_dir(&place.inside)?.count() == 2)),
    ("ask for the size of a file", |place| is(fs::metadata(place.inside.join("file"))?.len() == 6)),
    ("work in the folder", |place| {
        std::env::set_current_dir(&place.inside)?;
        is(File::open("file").is_ok() && std::env::current_dir()? == place.inside.canonicalize()?)
    }),
    ("write, rename and remove in the scratch folder", |place| {
        let folder = place.scratch.join("folder");
        fs::create_dir(&folder)?;
        fs::write(folder.join("file"), "text")?;
        fs::rename(folder.join("file"), place.scratch.join("file"))?;
        is(fs::read_to_string(place.scratch.join("file"))? == "text")?;
        fs::remove_file(place.scratch.join("file"))?;
        fs::remove_dir(folder)
    }),
    ("shorten and extend a file in the scratch folder", |place| {
        let mut file = File::create_new(place.scratch.join("sized"))?;
        file.set_len(1 << 20)?;
        file.seek(io::SeekFrom::End(0))?;
        file.write_all(b"end")?;
        file.sync_all()?;
        file.set_len(0)
    }),
    ("write to nowhere", |_| {
        OpenOptions::new().write(true).truncate(true).open("/dev/null")?.write_all(b"text")
    }),
    ("print", |_| {
        io::stderr().write_all(b"text")?;
        io::stdout().flush()
    }),
    ("start threads", |_| {
        let threads: Vec<_> = (0..16)
            .map(|index| thread::Builder::new().name(format!("thread {index}")).spawn(move || index))
            .collect::<io::Result<_>>()?;
        let sum: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        is(sum == 120)
    }),
    ("count processors", |_| thread::available_parallelism().map(drop)),
    ("sleep", |_| {
        let start = Instant::now();
        thread::sleep(Duration::from_millis(2));
        is(start.elapsed() >= Duration::from_millis(2))
    }),
    ("read the clock", |_| is(SystemTime::now() > SystemTime::UNIX_EPOCH)),
    ("draw random bytes from a file", |_| {
        let mut bytes = [0; 64];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        is(bytes != [0; 64])
    }),
    ("draw random bytes", |_| {
        let mut bytes = [0_u8; 64];
        call(libc::SYS_getrandom, [bytes.as_mut_ptr().expose_provenance() as u64, 64, 0, 0, 0])?;
        is(bytes != [0; 64])
    }),
    ("take 64 MiB", |_| {
        let mut bytes: Vec<u8> = Vec::new();
        bytes.try_reserve_exact(64 << 20)?;
        bytes.resize(64 << 20, 1);
        is(std::hint::black_box(bytes).iter().all(|byte| *byte == 1))
    }),
    ("map a file", |place| {
        let file = File::open(place.inside.join("file"))?;
        let (flags, read) = (libc::MAP_SHARED.cast_unsigned(), libc::PROT_READ.cast_unsigned());
        let descriptor = u64::from(file.as_raw_fd().cast_unsigned());
        let addr = call(libc::SYS_mmap, [0, 6, u64::from(read), u64::from(flags), descriptor])?;
        call(libc::SYS_munmap, [addr.cast_unsigned(), 6, 0, 0, 0]).map(drop)
    }),
    ("send text through a pipe", |_| {
        let (mut reader, mut writer) = io::pipe()?;
        writer.write_all(b"text")?;
        drop(writer);
        is(io::read_to_string(&mut reader)? == "text")
    }),
    ("copy a descriptor", |place| File::open(place.inside.join("file"))?.try_clone().map(drop)),
    ("read the limits", |_| {
        is(rustix::process::getrlimit(rustix::process::Resource::Core).maximum == Some(0))
    }),
    ("send itself no signal", |_| {
        let this = u64::from(std::process::id());
        call(libc::SYS_kill, [this, 0, 0, 0, 0]).map(drop)
    }),
];

fn is(true_thing: bool) -> io::Result<()> {
    if true_thing { Ok(()) } else { Err(io::Error::other("the result is wrong")) }
}
