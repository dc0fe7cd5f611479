//! The values that a rank which does not run is assumed to have set in the store.

use std::collections::BTreeMap;

/// How sure an answer is, from the surest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ground {
    /// Nothing but this answer is possible.
    Absent,
    /// A rank that runs set the same for itself.
    OwnValue,
    /// Nothing says which value the key would have.
    Nothing,
    /// A rank that runs will set the key.
    Running,
}

/// Keys of the library that stands for NCCL: which members of a group run.
pub(super) const MEMBERS: &str = "blockyard/member/";
/// Objects that ranks which run give each other.
const OBJECTS: &str = "blockyard/objects/";
/// The value for a rank that does not run.
const ABSENT: &[u8] = b"absent";
/// Groups of more than 128 ranks have several ids, whose keys begin with this.
const SCALABLE: &str = "UniqueNCCLID:";
/// The bytes of `ncclUniqueId`, which other readers of a key without a value get as well.
const UNIQUE_ID: [u8; 128] = [b'1'; 128];

/// Whether the key holds an id or a sign of life, from which no size follows.
pub(super) fn is_handle(key: &str) -> bool {
    let last = key.rsplit('/').next().unwrap_or_default();
    key.starts_with(MEMBERS)
        || last.starts_with(SCALABLE)
        || (key.contains("cuda//") && last.bytes().all(|byte| byte.is_ascii_digit() || byte == b':'))
}

/// The answer for a key.
pub(super) fn answer(key: &str, values: &BTreeMap<String, Vec<u8>>, running: &[u32]) -> (Vec<u8>, Ground) {
    if key.starts_with(MEMBERS) {
        return (ABSENT.to_vec(), Ground::Absent);
    }
    if is_handle(key) {
        // Different for each group.
        let mut id = UNIQUE_ID.to_vec();
        let name = key.bytes().rev().take(id.len() - 1);
        id.iter_mut().zip(name).for_each(|(to, byte)| *to = byte);
        return (id, Ground::Nothing);
    }
    let ground = if key.contains(OBJECTS) { Ground::Running } else { Ground::OwnValue };
    for (start, end) in numbers(key).into_iter().rev() {
        for rank in running {
            let own = format!(
                "{}{rank}{}",
                key.get(..start).unwrap_or_default(),
                key.get(end..).unwrap_or_default()
            );
            if let Some(value) = values.get(&own) {
                return (value.clone(), ground);
            }
        }
    }
    (b"1".to_vec(), Ground::Nothing)
}

/// Where numbers are in a text.
fn numbers(text: &str) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let is_digit = |index: usize| bytes.get(index).is_some_and(u8::is_ascii_digit);
    let mut found = Vec::new();
    let mut index = 0;
    while index < bytes.len() {
        let start = index;
        while is_digit(index) {
            index += 1;
        }
        if index > start {
            found.push((start, index));
        }
        index += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Ground, answer};

    #[test]
    fn a_rank_that_runs_answers_for_another() {
        let values = BTreeMap::from([("group/1/rank_7/name".to_owned(), b"seven".to_vec())]);
        let found = answer("group/1/rank_63/name", &values, &[0, 7]);
        assert_eq!(found, (b"seven".to_vec(), Ground::OwnValue));
        assert_eq!(answer("group/last", &values, &[0, 7]).1, Ground::Nothing);
        let values = BTreeMap::from([("default/blockyard/objects/0/1/all/7".to_owned(), b"seven".to_vec())]);
        let found = answer("default/blockyard/objects/0/1/all/0", &values, &[0, 7]);
        assert_eq!(found.1, Ground::Running, "rank 0 sets it itself, however long that takes");
    }

    #[test]
    fn groups_have_different_ids() {
        let none = BTreeMap::new();
        let [first, second] =
            ["default_pg/0//cuda//0", "default_pg/0//cuda//1"].map(|key| answer(key, &none, &[3]).0);
        assert_eq!((first.len(), second.len()), (128, 128));
        assert_ne!(first, second);
        // Rank 3 is the first of its ids alone.
        let own = BTreeMap::from([("mesh_dp/cuda//UniqueNCCLID:3".to_owned(), vec![3; 128])]);
        let [first, second] = ["mesh_dp/cuda//UniqueNCCLID:0", "mesh_dp/cuda//UniqueNCCLID:1"]
            .map(|key| answer(key, &own, &[3]).0);
        assert_eq!((first.len(), second.len()), (128, 128));
        assert_ne!(first, second);
        assert_ne!(first, [3; 128]);
    }
}
