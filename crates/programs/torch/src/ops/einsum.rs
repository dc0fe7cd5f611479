//! `einsum`: operands are permuted into one order of dimensions, then contracted in pairs by batched
//! products.

use crate::autocast::Cast;
use crate::error::runtime;
use crate::{Result, Tensor};

use super::matmul::bmm;
use super::pointwise::mul;
use super::reduce::sum;
use super::views::{diagonal, permute, reshape, unsqueeze, view};

/// Labels: letters in PyTorch's order, capitals first; `Dots` are the dimensions of an ellipsis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Label {
    Letter(char),
    Dots,
}

fn labels(part: &str) -> Result<Vec<Label>> {
    let mut labels = Vec::new();
    let mut rest = part;
    while let Some(letter) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("...") {
            labels.push(Label::Dots);
            rest = after;
            continue;
        }
        if letter.is_ascii_alphabetic() {
            labels.push(Label::Letter(letter));
        } else if letter != ' ' {
            return runtime(format!(
                "einsum(): invalid subscript given at index, subscripts must be in [a-zA-Z]: {letter}"
            ));
        }
        rest = rest.get(letter.len_utf8()..).unwrap_or_default();
    }
    Ok(labels)
}

/// An equation, and where each label's dimension goes.
struct Plan {
    operands: Vec<Vec<Label>>,
    /// Output labels in their order, then those that are summed.
    order: Vec<Label>,
    outputs: usize,
    /// Dimensions that the ellipsis stands for.
    dots: usize,
}

impl Plan {
    fn new(equation: &str, tensors: &[Tensor]) -> Result<Self> {
        let (left, right) = match equation.split_once("->") {
            Some((left, right)) => (left, Some(right)),
            None => (equation, None),
        };
        let operands: Vec<Vec<Label>> = left.split(',').map(labels).collect::<Result<_>>()?;
        if operands.len() != tensors.len() {
            return runtime(if operands.len() < tensors.len() {
                "einsum(): fewer operands were provided in the equation than specified"
            } else {
                "einsum(): more operands were provided than specified in the equation"
            });
        }
        let mut dots = 0;
        for (index, (labels, tensor)) in operands.iter().zip(tensors).enumerate() {
            let letters = labels.iter().filter(|label| **label != Label::Dots).count();
            let covered = tensor.dim().checked_sub(letters);
            match covered {
                Some(covered) if labels.contains(&Label::Dots) => dots = dots.max(covered),
                Some(0) => {}
                _ => {
                    return runtime(format!(
                        "einsum(): the number of subscripts in the equation ({letters}) does not match the number of \
                         dimensions ({}) for operand {index} and no ellipsis was given",
                        tensor.dim()
                    ));
                }
            }
        }
        check_sizes(&operands, tensors)?;
        let all = || operands.iter().flatten().copied();
        let output = if let Some(right) = right {
            labels(right)?
        } else {
            // The ellipsis first, then what occurs once, in the order of the alphabet, capitals first.
            let mut letters: Vec<Label> = ('A'..='Z')
                .chain('a'..='z')
                .map(Label::Letter)
                .filter(|label| all().filter(|other| other == label).count() == 1)
                .collect();
            if all().any(|label| label == Label::Dots) {
                letters.insert(0, Label::Dots);
            }
            letters
        };
        if let Some(Label::Letter(letter)) =
            output.iter().find(|label| **label != Label::Dots && !all().any(|other| other == **label))
        {
            return runtime(format!(
                "einsum(): output subscript {letter} does not appear in the equation for any input operand"
            ));
        }
        let outputs = output.len();
        let mut order = output;
        let summed: Vec<Label> = std::iter::once(Label::Dots)
            .chain(('A'..='Z').chain('a'..='z').map(Label::Letter))
            .filter(|label| all().any(|other| other == *label) && !order.contains(label))
            .collect();
        order.extend(summed);
        Ok(Self { operands, order, outputs, dots })
    }

    fn width(&self, label: Label) -> usize {
        if label == Label::Dots { self.dots } else { 1 }
    }

    fn output_dims(&self) -> usize {
        self.order.iter().take(self.outputs).map(|label| self.width(*label)).sum()
    }

    fn dims(&self) -> usize {
        self.order.iter().map(|label| self.width(*label)).sum()
    }

    /// The operand with a dimension for each place of the order, of size 1 where it has none.
    fn permuted(&self, labels: &[Label], tensor: &Tensor) -> Result<Tensor> {
        let mut operand = tensor.clone();
        let mut places: Vec<Option<usize>> = Vec::new();
        let mut seen: Vec<(Label, usize)> = Vec::new();
        let letters = labels.iter().filter(|label| **label != Label::Dots).count();
        let covered = tensor.dim().saturating_sub(letters);
        let mut dim = 0;
        for label in labels {
            if *label == Label::Dots {
                seen.push((*label, dim));
                dim += covered;
                continue;
            }
            if let Some((_, before)) = seen.iter().find(|(other, _)| other == label).copied() {
                // A label twice is a diagonal, which comes last and is moved to the first one's place.
                operand = diagonal(&operand, 0, before as i64, dim as i64)?;
                let last = operand.dim().saturating_sub(1);
                let mut order: Vec<i64> = (0..last as i64).collect();
                order.insert(before.min(order.len()), last as i64);
                operand = permute(&operand, &order)?;
                continue;
            }
            seen.push((*label, dim));
            dim += 1;
        }
        for label in &self.order {
            let width = self.width(*label);
            let start = seen.iter().find(|(other, _)| other == label).map(|(_, start)| *start);
            let have = if *label == Label::Dots { covered } else { 1 };
            for offset in 0..width {
                // An ellipsis that stands for fewer dimensions is filled at its front.
                let missing = width.saturating_sub(have);
                places.push(start.and_then(|start| offset.checked_sub(missing).map(|offset| start + offset)));
            }
        }
        let mut order = Vec::with_capacity(places.len());
        for place in places {
            order.push(if let Some(place) = place {
                place as i64
            } else {
                operand = unsqueeze(&operand, -1)?;
                operand.dim() as i64 - 1
            });
        }
        permute(&operand, &order)
    }
}

/// A letter has one size in all operands, where it is not 1.
fn check_sizes(operands: &[Vec<Label>], tensors: &[Tensor]) -> Result<()> {
    let mut sizes: Vec<(Label, i64)> = Vec::new();
    for (number, (labels, tensor)) in operands.iter().zip(tensors).enumerate() {
        if labels.contains(&Label::Dots) {
            continue;
        }
        for (label, size) in labels.iter().zip(tensor.shape().iter()) {
            match sizes.iter_mut().find(|(other, _)| other == label) {
                Some((_, seen)) if *seen == 1 => *seen = *size,
                Some((Label::Letter(letter), seen)) if *size != 1 && *seen != *size => {
                    return runtime(format!(
                        "einsum(): subscript {letter} has size {size} for operand {number} which does not broadcast with \
                         previously seen size {seen}"
                    ));
                }
                Some(_) => {}
                None => sizes.push((*label, *size)),
            }
        }
    }
    Ok(())
}

/// `einsum`.
pub(crate) fn einsum(equation: &str, tensors: &[Tensor]) -> Result<Tensor> {
    if tensors.is_empty() {
        return runtime("einsum(): must provide at least one operand");
    }
    let cast = Cast::lower(tensors.first().map_or(crate::Device::Cpu, Tensor::device));
    let tensors: Vec<Tensor> = tensors.iter().map(|tensor| cast.apply(tensor)).collect::<Result<_>>()?;
    let plan = Plan::new(equation, &tensors)?;
    let (dims, output_dims) = (plan.dims(), plan.output_dims());
    let mut operands = std::collections::VecDeque::new();
    for (labels, tensor) in plan.operands.iter().zip(&tensors) {
        operands.push_back(plan.permuted(labels, tensor)?);
    }
    let mut counts: Vec<usize> = (0..dims as i64)
        .map(|dim| operands.iter().filter(|operand| operand.size(dim) != 1).count())
        .collect();
    let several = operands.len() > 1;
    // From left to right: the result of a pair comes last.
    while operands.len() > 1 {
        let (Some(mut a), Some(mut b)) = (operands.pop_front(), operands.pop_front()) else { break };
        let (mut of_a, mut of_b, mut of_both) = (vec![], vec![], vec![]);
        for (dim, count) in counts.iter_mut().enumerate().skip(output_dims) {
            let at = dim as i64;
            if a.size(at) != 1 && b.size(at) != 1 {
                *count = count.saturating_sub(1);
                if *count == 1 {
                    of_both.push(at);
                    *count = 0;
                }
            } else if *count == 1 {
                if a.size(at) != 1 {
                    of_a.push(at);
                    *count = 0;
                } else if b.size(at) != 1 {
                    of_b.push(at);
                    *count = 0;
                }
            }
        }
        if !of_a.is_empty() {
            a = sum(&a, Some(&of_a), true, None)?;
        }
        if !of_b.is_empty() {
            b = sum(&b, Some(&of_b), true, None)?;
        }
        operands.push_back(sum_of_products(a, b, &of_both)?);
    }
    let Some(result) = operands.pop_front() else {
        return runtime("einsum(): must provide at least one operand");
    };
    if dims == output_dims {
        return Ok(result);
    }
    if several {
        let sizes: Vec<i64> = result.shape().iter().take(output_dims).copied().collect();
        return view(&result, &sizes);
    }
    let summed: Vec<i64> = (output_dims as i64..dims as i64).collect();
    sum(&result, Some(&summed), false, None)
}

/// `sumproduct_pair`, with the summed dimensions kept.
pub(super) fn sum_of_products(left: Tensor, right: Tensor, summed: &[i64]) -> Result<Tensor> {
    if summed.is_empty() {
        return mul(&left, &right);
    }
    let (mut left, mut right) = (left, right);
    let (mut both, mut of_left, mut of_right) = (vec![], vec![], vec![]);
    let mut inner = 1;
    for dim in 0..left.dim() as i64 {
        let (is_left, is_right) = (left.size(dim) != 1, right.size(dim) != 1);
        if summed.contains(&dim) {
            match (is_left, is_right) {
                (true, true) => inner *= left.size(dim),
                (true, false) => left = sum(&left, Some(&[dim]), true, None)?,
                (false, true) => right = sum(&right, Some(&[dim]), true, None)?,
                (false, false) => {}
            }
        } else if is_left && is_right {
            both.push(dim);
        } else if is_left {
            of_left.push(dim);
        } else {
            of_right.push(dim);
        }
    }
    // Where all dimensions of the right operand come first in the result, the operands change places.
    if let (Some(first_left), Some(last_right)) = (of_left.first(), of_right.last())
        && last_right < first_left
    {
        std::mem::swap(&mut left, &mut right);
        std::mem::swap(&mut of_left, &mut of_right);
    }
    let sizes =
        |tensor: &Tensor, dims: &[i64]| dims.iter().map(|dim| tensor.size(*dim)).collect::<Vec<i64>>();
    let count = |tensor: &Tensor, dims: &[i64]| crate::numel(&sizes(tensor, dims));
    let (batch, rows, columns) = (count(&left, &both), count(&left, &of_left), count(&right, &of_right));
    let mut output_sizes = sizes(&left, &both);
    output_sizes.extend(sizes(&left, &of_left));
    output_sizes.extend(summed.iter().map(|_| 1));
    output_sizes.extend(sizes(&right, &of_right));
    let chain = |parts: [&[i64]; 4]| parts.concat();
    let order = chain([&both, &of_left, summed, &of_right]);
    let mut inverse = vec![0; order.len()];
    for (position, dim) in order.iter().enumerate() {
        if let Some(slot) = usize::try_from(*dim).ok().and_then(|dim| inverse.get_mut(dim)) {
            *slot = position as i64;
        }
    }
    let left = reshape(&permute(&left, &order)?, &[batch, rows, inner])?;
    let right =
        reshape(&permute(&right, &chain([&both, summed, &of_right, &of_left]))?, &[batch, inner, columns])?;
    let result = bmm(&left, &right)?;
    permute(&view(&result, &output_sizes)?, &inverse)
}
