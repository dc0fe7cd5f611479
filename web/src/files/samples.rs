//! The recordings that come with the page.

use js_sys::Uint8Array;
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::browser;
use crate::session::Session;

/// A recording that comes with the page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) summary: &'static str,
}

pub(crate) static SAMPLES: [Sample; 3] = [
    Sample {
        name: "gpt2_varlen",
        title: "GPT-2",
        summary: "GPT-2 training with mixed precision and texts of random length: 52,141 events",
    },
    Sample { name: "resnet50_amp", title: "ResNet-50", summary: "ResNet-50 training with mixed precision" },
    Sample {
        name: "gnn_random",
        title: "GNN",
        summary: "A graph network on random graphs: sizes that never repeat",
    },
];

impl Sample {
    pub(crate) fn file_name(&self) -> String {
        format!("{}.jsonl.gz", self.name)
    }

    async fn fetch(&self) -> Option<Vec<u8>> {
        let buffer = browser::fetch_bytes(&format!("samples/{}", self.file_name())).await?;
        Some(Uint8Array::new(&buffer).to_vec())
    }
}

/// The bytes of the fetched samples, so that samples open without the network; a handle that is copied
/// freely.
#[derive(Clone, Copy)]
pub(crate) struct Samples(StoredValue<Vec<(&'static str, Vec<u8>)>, LocalStorage>);

impl Samples {
    pub(crate) fn new() -> Self {
        Self(StoredValue::new_local(Vec::new()))
    }

    fn kept(self, sample: &Sample) -> Option<Vec<u8>> {
        self.0.with_value(|kept| {
            kept.iter().find(|(name, _)| *name == sample.name).map(|(_, bytes)| bytes.clone())
        })
    }

    async fn bytes(self, sample: &'static Sample) -> Option<Vec<u8>> {
        if let Some(bytes) = self.kept(sample) {
            return Some(bytes);
        }
        let bytes = sample.fetch().await?;
        self.0.update_value(|kept| kept.push((sample.name, bytes.clone())));
        Some(bytes)
    }

    /// Fetches all samples for later.
    pub(crate) async fn prefetch(self) {
        for sample in &SAMPLES {
            let _ = self.bytes(sample).await;
        }
    }

    pub(crate) fn open(self, session: Session, sample: &'static Sample) {
        self.open_and(session, sample, || ());
    }

    /// Opens the sample, and calls `then` when the sample is open.
    pub(crate) fn open_and(self, session: Session, sample: &'static Sample, then: impl FnOnce() + 'static) {
        spawn_local(async move {
            match self.bytes(sample).await {
                Some(bytes) => match browser::blob_of(&bytes) {
                    Some(blob) => {
                        session.files().open_blob(sample.file_name(), blob, None, Box::new(then)).await;
                    }
                    None => session.show_error(format!("The sample {} could not be opened.", sample.name)),
                },
                None => {
                    session.show_error(format!("The sample {} could not be fetched.", sample.name));
                }
            }
        });
    }
}
