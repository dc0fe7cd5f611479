//! Notes for requests about memory pools, settings and the work of streams, which cause no event.

use blockyard_record::PoolId;
use blockyard_workload::{Request, Workload};

/// The request as a workload writes it, and what it does; `None` for requests whose events show what they
/// are.
pub(crate) fn note_of(workload: &Workload, request: Request) -> Option<(String, String)> {
    let name =
        |pool_id: PoolId| workload.pool_name(pool_id).map_or_else(|| pool_id.to_string(), ToOwned::to_owned);
    Some(match request {
        Request::CreatePool { pool_id, never_splits, serves_on_oom } => {
            let (mut title, mut sentence) =
                (format!("pool {}", name(pool_id)), String::from("makes a memory pool"));
            if never_splits {
                title.push_str(" no_split");
                sentence.push_str("; each of its requests gets a whole segment");
            }
            if serves_on_oom {
                title.push_str(" use_on_oom");
                sentence.push_str("; requests elsewhere that would fail may take what it has cached");
            }
            (title, sentence)
        }
        Request::EnterPool { pool_id } => (
            format!("enter {}", name(pool_id)),
            format!("what follows comes from the memory pool {}", name(pool_id)),
        ),
        Request::LeavePool { pool_id } => (
            format!("leave {}", name(pool_id)),
            format!("what follows does not come from the memory pool {} any more", name(pool_id)),
        ),
        // The events show what is released.
        Request::DestroyPool { pool_id } => (format!("destroy {}", name(pool_id)), String::new()),
        Request::Set { settings } => {
            let text = workload.settings(settings).unwrap_or_default();
            let sentence = "changes the allocator's settings; blocks and segments stay as they are";
            (format!("set {text}").trim_end().to_owned(), sentence.to_owned())
        }
        Request::Advance { stream: None } => (
            "advance".to_owned(),
            "the work queued on every stream is done; frees that wait for it complete when PyTorch looks, at a later request"
                .to_owned(),
        ),
        Request::Advance { stream: Some(stream) } => {
            let name = workload.stream_name(stream).unwrap_or("default");
            (
                format!("advance {name}"),
                format!(
                    "the work queued on the stream {name} is done; frees that wait for it complete when \
                     PyTorch looks, at a later request"
                ),
            )
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_without_events_have_a_note_with_the_names_of_the_text() {
        let workload = Workload::parse(
            "stream side; pool graph no_split use_on_oom; enter graph; a = alloc 1 MiB; leave graph; advance; advance side
             set max_split_size_mb:64
             free a; destroy graph",
        )
        .unwrap();
        let notes: Vec<_> =
            workload.requests().iter().filter_map(|request| note_of(&workload, *request)).collect();
        let titles: Vec<&str> = notes.iter().map(|(title, _)| title.as_str()).collect();
        assert_eq!(
            titles,
            [
                "pool graph no_split use_on_oom",
                "enter graph",
                "leave graph",
                "advance",
                "advance side",
                "set max_split_size_mb:64",
                "destroy graph",
            ]
        );
        assert_eq!(
            notes[0].1,
            "makes a memory pool; each of its requests gets a whole segment; requests elsewhere that would fail may take what it \
             has cached"
        );
        assert_eq!(notes[1].1, "what follows comes from the memory pool graph");
        assert!(notes[4].1.starts_with("the work queued on the stream side is done"));
        assert_eq!(notes[6].1, "", "the events show what is released");
    }
}
