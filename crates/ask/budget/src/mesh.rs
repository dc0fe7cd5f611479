//! Layouts of ranks: how many ranks each dimension of a mesh has.

use std::fmt;
use std::str::FromStr;

use crate::{Values, ValuesError};

/// The dimension that counts the stages of a pipeline.
pub(crate) const STAGES: &str = "pp";

/// Why a text does not name a mesh.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MeshError {
    /// The text has another form.
    #[error("\"{0}\" names no dimensions: write dp=1..64,tp=1,2,4,8,pp=1,2,4")]
    Form(String),
    /// Two dimensions have one name.
    #[error("the dimension {0} is named twice")]
    Twice(String),
    /// The values of a dimension are wrong.
    #[error("{name}: {error}")]
    Values {
        /// The dimension.
        name: String,
        /// What is wrong.
        error: ValuesError,
    },
}

/// Dimensions, each with the numbers of ranks that it may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mesh(Vec<(String, Values)>);

/// A number of ranks for each dimension.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout(Vec<(String, u64)>);

impl FromStr for Mesh {
    type Err = MeshError;

    fn from_str(text: &str) -> Result<Self, MeshError> {
        let form = || MeshError::Form(text.to_owned());
        let mut dimensions: Vec<(String, String)> = Vec::new();
        for part in text.split(',') {
            // A part without a name is a further value of the dimension before.
            if let Some((name, values)) = part.split_once('=') {
                let name = name.trim().trim_start_matches('-').to_owned();
                if name.is_empty() {
                    return Err(form());
                }
                if dimensions.iter().any(|(known, _)| *known == name) {
                    return Err(MeshError::Twice(name));
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
            Err(error) => Err(MeshError::Values { name, error }),
        });
        Ok(Self(dimensions.collect::<Result<_, _>>()?))
    }
}

impl Mesh {
    /// The names of the dimensions, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// The layouts whose dimensions multiply to this number of ranks, those with the largest first dimensions
    /// last.
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

    /// How many ranks a dimension has; `None` where no dimension has this name.
    pub fn size(&self, name: &str) -> Option<u64> {
        self.sizes().find(|(known, _)| *known == name).map(|(_, size)| size)
    }

    /// The ranks that run in the place of all: the first rank; with stages of a pipeline (a dimension `pp`)
    /// also the last rank, which belongs to the last stage in every order in which a program may number
    /// ranks; and with more than two stages one or more ranks of a stage between.
    pub fn distinct_ranks(&self, ranks: u32) -> Vec<u32> {
        let Some(stages) = self.size(STAGES).filter(|stages| *stages > 1) else { return vec![0] };
        let mut all = vec![0];
        if stages > 2 {
            all.extend(self.ranks_between(stages, ranks));
        }
        all.push(ranks.saturating_sub(1));
        all
    }

    /// Ranks such that in each order of the dimensions one of them belongs to a stage between the first and
    /// the last: a single rank if one serves all orders. Of ranks that serve equally many orders, the rank
    /// that belongs to the second stage in most orders is taken, since in the usual schedules the second
    /// stage keeps more parts of a batch than later stages.
    fn ranks_between(&self, stages: u64, ranks: u32) -> Vec<u32> {
        let mut strides = self.strides();
        let mut all = Vec::new();
        while !strides.is_empty() {
            let stage = |rank: u32, stride: &u64| u64::from(rank) / stride % stages;
            let is_between = |stage: u64| stage > 0 && stage + 1 < stages;
            let mut best = (0, 0, 0);
            for rank in 1..ranks {
                let of = strides.iter().map(|stride| stage(rank, stride));
                let (between, second) = of.fold((0, 0), |(between, second), stage| {
                    (between + usize::from(is_between(stage)), second + usize::from(stage == 1))
                });
                if (between, second) > (best.0, best.1) {
                    best = (between, second, rank);
                }
                if best.1 == strides.len() {
                    break;
                }
            }
            let (between, _, rank) = best;
            if between == 0 {
                break;
            }
            strides.retain(|stride| !is_between(stage(rank, stride)));
            all.push(rank);
        }
        all.sort_unstable();
        all
    }

    /// The possible differences between the numbers of two ranks that are neighbors in the dimension of the
    /// stages: for each set of dimensions that an order may put inside of that dimension, the product of
    /// their sizes. Ascending.
    fn strides(&self) -> Vec<u64> {
        let mut strides = vec![1_u64];
        for (_, size) in self.sizes().filter(|(name, size)| *name != STAGES && *size > 1) {
            let more: Vec<u64> = strides.iter().map(|stride| stride.saturating_mul(size)).collect();
            strides.extend(more);
        }
        strides.sort_unstable();
        strides.dedup();
        strides
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
        assert_eq!((of("dp=4,pp=2"), of("dp=8,pp=1"), of("tp=8")), (vec![0, 7], vec![0], vec![0]));
    }

    #[test]
    fn one_rank_is_of_a_stage_between_in_each_order() {
        let of = |text: &str, ranks: u32| {
            text.parse::<Mesh>().unwrap().layouts(u64::from(ranks))[0].distinct_ranks(ranks)
        };
        // Stage 1 of 4, whether stages are the outermost, the innermost, or lie between.
        assert_eq!(of("dp=4,tp=4,pp=4", 64), [0, 21, 63]);
        assert_eq!(of("pp=8", 8), [0, 1, 7]);
        // Stage 2 where stages are the innermost, stage 1 where they are the outermost.
        assert_eq!(of("dp=2,pp=4", 8), [0, 2, 7]);
        // No rank is of the only stage between in both orders.
        assert_eq!(of("dp=2,pp=3", 6), [0, 1, 2, 5]);
        for text in ["dp=2,tp=2,pp=4", "dp=8,tp=2,pp=4", "dp=3,tp=2,pp=5", "dp=4,tp=2,pp=8"] {
            let layout = &text.parse::<Mesh>().unwrap();
            let size = |name: &str| -> u64 {
                let part = text.split(',').find_map(|part| part.strip_prefix(name));
                part.and_then(|part| part.strip_prefix('=')).unwrap().parse().unwrap()
            };
            let (dp, tp, pp) = (size("dp"), size("tp"), size("pp"));
            let ranks = dp * tp * pp;
            let asked = layout.layouts(ranks)[0].distinct_ranks(u32::try_from(ranks).unwrap());
            for stride in [1, dp, tp, dp * tp] {
                let stages: Vec<u64> = asked.iter().map(|rank| u64::from(*rank) / stride % pp).collect();
                assert!(
                    stages.iter().any(|stage| (1..pp - 1).contains(stage)),
                    "{text} {stride}: {stages:?}"
                );
                assert_eq!((stages[0], stages.last()), (0, Some(&(pp - 1))), "{text} {stride}");
            }
        }
    }

    #[test]
    fn what_is_no_mesh_is_said() {
        for text in ["", "1,2", "dp", "=1,2"] {
            assert_eq!(text.parse::<Mesh>(), Err(MeshError::Form(text.to_owned())), "{text}");
        }
        assert_eq!("dp=1,dp=2".parse::<Mesh>(), Err(MeshError::Twice("dp".to_owned())));
        let error = "dp=1,tp=x".parse::<Mesh>().unwrap_err().to_string();
        assert!(error.starts_with("tp: \"x\" is not a range"), "{error}");
    }
}
