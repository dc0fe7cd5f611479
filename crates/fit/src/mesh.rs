//! Layouts of ranks: how many ranks each dimension of a mesh has.

use std::fmt;
use std::str::FromStr;

use crate::{NotValues, Values};

/// The dimension that counts the stages of a pipeline.
const STAGES: &str = "pp";

/// A text that names no mesh.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAMesh {
    /// Another form.
    #[error("\"{0}\" names no dimensions: write dp=1..64,tp=1,2,4,8,pp=1,2,4")]
    Form(String),
    /// Two dimensions of one name.
    #[error("{0} is there twice")]
    Twice(String),
    /// The values of a dimension.
    #[error("{name}: {error}")]
    Values {
        /// The dimension.
        name: String,
        /// What is wrong.
        error: NotValues,
    },
}

/// Dimensions, and which numbers of ranks each may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mesh(Vec<(String, Values)>);

/// A number of ranks for each dimension.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout(Vec<(String, u64)>);

impl FromStr for Mesh {
    type Err = NotAMesh;

    fn from_str(text: &str) -> Result<Self, NotAMesh> {
        let form = || NotAMesh::Form(text.to_owned());
        let mut dimensions: Vec<(String, String)> = Vec::new();
        for part in text.split(',') {
            // A part without a name is one more value of the dimension before.
            if let Some((name, values)) = part.split_once('=') {
                let name = name.trim().trim_start_matches('-').to_owned();
                if name.is_empty() {
                    return Err(form());
                }
                if dimensions.iter().any(|(known, _)| *known == name) {
                    return Err(NotAMesh::Twice(name));
                }
                dimensions.push((name, values.to_owned()));
            } else {
                let (_, values) = dimensions.last_mut().ok_or_else(form)?;
                values.push(',');
                values.push_str(part);
            }
        }
        let dimensions = dimensions.into_iter().map(|(name, values)| match values.parse() {
            Ok(values) => Ok((name, values)),
            Err(error) => Err(NotAMesh::Values { name, error }),
        });
        Ok(Self(dimensions.collect::<Result<_, _>>()?))
    }
}

impl Mesh {
    /// The names of the dimensions, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// The layouts whose dimensions multiply to this number of ranks, those with the largest first dimensions last.
    #[must_use]
    pub fn layouts(&self, ranks: u64) -> Vec<Layout> {
        let mut all = Vec::new();
        add(&self.0, ranks, &mut Vec::new(), &mut all);
        all
    }
}

/// Adds the layouts that begin with `before` and whose other dimensions multiply to `left`.
fn add(dimensions: &[(String, Values)], left: u64, before: &mut Vec<(String, u64)>, all: &mut Vec<Layout>) {
    let Some(((name, values), rest)) = dimensions.split_first() else {
        if left == 1 {
            all.push(Layout(before.clone()));
        }
        return;
    };
    for size in values.iter().filter(|size| *size > 0).take_while(|size| *size <= left) {
        if left.is_multiple_of(size) {
            before.push((name.clone(), size));
            add(rest, left / size, before, all);
            before.pop();
        }
    }
}

impl Layout {
    /// Each dimension with its number of ranks.
    pub fn sizes(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, size)| (name.as_str(), *size))
    }

    /// How many ranks a dimension has; none where no dimension has this name.
    #[must_use]
    pub fn size(&self, name: &str) -> Option<u64> {
        self.sizes().find(|(known, _)| *known == name).map(|(_, size)| size)
    }

    /// The ranks that stand for all: the first; with stages of a pipeline (a dimension `pp`) also the last one, which is of the last stage in
    /// whatever order the program numbers ranks.
    #[must_use]
    pub fn distinct_ranks(&self, ranks: u32) -> Vec<u32> {
        let has_stages = self.size(STAGES).is_some_and(|stages| stages > 1);
        if has_stages { vec![0, ranks.saturating_sub(1)] } else { vec![0] }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.sizes().map(|(name, size)| format!("{name}={size}")).collect();
        write!(f, "{}", sizes.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layouts(text: &str, ranks: u64) -> Vec<String> {
        text.parse::<Mesh>().unwrap().layouts(ranks).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn layouts_multiply_to_the_number_of_ranks() {
        assert_eq!(layouts("dp=1..64,tp=1,2,4", 4), ["dp=1 tp=4", "dp=2 tp=2", "dp=4 tp=1"]);
        let all = "dp=1..64,tp=1,2,4,8,pp=1,2,4".parse::<Mesh>().unwrap().layouts(64);
        assert_eq!(all.len(), 12);
        for layout in &all {
            assert_eq!(layout.sizes().map(|(_, size)| size).product::<u64>(), 64, "{layout}");
        }
        assert_eq!(layouts("dp=2,tp=2", 8), Vec::<String>::new());
        // No number above the number of ranks is tried.
        assert_eq!(layouts("dp=1..18446744073709551615", 7), ["dp=7"]);
    }

    #[test]
    fn stages_have_a_first_and_a_last_rank() {
        let of = |text: &str| text.parse::<Mesh>().unwrap().layouts(8)[0].distinct_ranks(8);
        assert_eq!((of("dp=2,pp=4"), of("dp=8,pp=1"), of("tp=8")), (vec![0, 7], vec![0], vec![0]));
    }

    #[test]
    fn what_is_no_mesh_is_said() {
        for text in ["", "1,2", "dp", "=1,2"] {
            assert_eq!(text.parse::<Mesh>(), Err(NotAMesh::Form(text.to_owned())), "{text}");
        }
        assert_eq!("dp=1,dp=2".parse::<Mesh>(), Err(NotAMesh::Twice("dp".to_owned())));
        let error = "dp=1,tp=x".parse::<Mesh>().unwrap_err().to_string();
        assert!(error.starts_with("tp: \"x\" is no range"), "{error}");
    }
}
