//! The snapshots that come with the page.

use js_sys::{Array, Uint8Array};
use leptos::prelude::*;
use leptos::task::spawn_local;
use web_sys::File;

use crate::browser;
use crate::session::Session;

/// A run that comes with the page: the snapshots of a program of `examples/samples`, one for each rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) name: &'static str,
    /// What a reader sees in the run.
    pub(crate) title: &'static str,
    pub(crate) summary: &'static str,
    files: &'static [&'static str],
}

pub(crate) static SAMPLES: [Sample; 4] = [
    Sample {
        name: "growing_sizes",
        title: "Out of memory with memory free",
        summary: "Texts that grow: enough is cached, in pieces that are too small",
        files: &["growing_sizes.pickle.gz"],
    },
    Sample {
        name: "kept_losses",
        title: "A list that keeps every loss",
        summary: "A leak: each loss keeps the tensors of its backward pass",
        files: &["kept_losses.pickle.gz"],
    },
    Sample {
        name: "activations",
        title: "Activations fill the memory",
        summary: "A small transformer: each layer keeps what its backward pass needs",
        files: &["activations.pickle.gz"],
    },
    Sample {
        name: "ranks",
        title: "One of two ranks fails",
        summary: "Data parallelism in which rank 1 gets the longer texts",
        files: &["ranks.rank0.pickle.gz", "ranks.rank1.pickle.gz"],
    },
];

impl Sample {
    /// The sample that a file of this name belongs to.
    pub(crate) fn of_file(name: &str) -> Option<&'static Self> {
        SAMPLES.iter().find(|sample| sample.files.contains(&name))
    }

    /// The files of the sample with their bytes. `None` where one could not be fetched.
    async fn fetch(&self) -> Option<Vec<Vec<u8>>> {
        let mut all = Vec::new();
        for name in self.files {
            let buffer = browser::fetch_bytes(&format!("samples/{name}")).await?;
            all.push(Uint8Array::new(&buffer).to_vec());
        }
        Some(all)
    }

    /// The files of the sample.
    fn opened(&self, contents: &[Vec<u8>]) -> Option<Vec<File>> {
        let file = |(name, bytes): (&&str, &Vec<u8>)| {
            let parts = Array::of1(&Uint8Array::from(bytes.as_slice()));
            File::new_with_u8_array_sequence(&parts, name).ok()
        };
        self.files.iter().zip(contents).map(file).collect()
    }
}

/// A sample whose files were fetched: its name, and the bytes of each file.
type Fetched = (&'static str, Vec<Vec<u8>>);

/// The bytes of the fetched samples, so that samples open without the network; a handle that is copied
/// freely.
#[derive(Clone, Copy)]
pub(crate) struct Samples(StoredValue<Vec<Fetched>, LocalStorage>);

impl Samples {
    pub(crate) fn new() -> Self {
        Self(StoredValue::new_local(Vec::new()))
    }

    fn kept(self, sample: &Sample) -> Option<Vec<Vec<u8>>> {
        self.0.with_value(|kept| {
            kept.iter().find(|(name, _)| *name == sample.name).map(|(_, contents)| contents.clone())
        })
    }

    async fn contents(self, sample: &'static Sample) -> Option<Vec<Vec<u8>>> {
        if let Some(contents) = self.kept(sample) {
            return Some(contents);
        }
        let contents = sample.fetch().await?;
        self.0.update_value(|kept| kept.push((sample.name, contents.clone())));
        Some(contents)
    }

    /// Fetches all samples for later.
    pub(crate) async fn prefetch(self) {
        for sample in &SAMPLES {
            let _ = self.contents(sample).await;
        }
    }

    pub(crate) fn open(self, session: Session, sample: &'static Sample) {
        self.open_and(session, sample, || ());
    }

    /// Opens the sample, and calls `then` when the sample is open.
    pub(crate) fn open_and(self, session: Session, sample: &'static Sample, then: impl FnOnce() + 'static) {
        spawn_local(async move {
            let Some(contents) = self.contents(sample).await else {
                return session.show_error(format!("The sample {} could not be fetched.", sample.title));
            };
            match sample.opened(&contents).as_deref() {
                Some([file]) => session.files().open_one(file, Box::new(then)),
                Some(files) => session.files().open_ranks(files.to_vec(), Box::new(then)),
                None => session.show_error(format!("The sample {} could not be opened.", sample.title)),
            }
        });
    }
}
