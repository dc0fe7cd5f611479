//! cuDNN's workspaces of convolutions.

use blockyard_gpus::tables;

use crate::{MemoryFormat, Result, session};

use super::super::sort::temporary;
use super::{Backend, Convolution, Pass, value_of_dim};

impl Convolution {
    /// The configuration of a pass, in numbers.
    fn numbers(&self, pass: Pass) -> Vec<i64> {
        let mut numbers = vec![
            1,
            pass as i64,
            i64::from(self.settings.is_transposed),
            self.dtype as i64,
            i64::from(self.format != MemoryFormat::Contiguous),
            self.settings.groups,
        ];
        for list in [
            &self.input,
            &self.weight,
            &self.settings.stride,
            &self.settings.padding,
            &self.settings.dilation,
        ] {
            numbers.push(-1);
            numbers.extend(list);
        }
        numbers
    }

    fn operands(&self) -> tables::Operands {
        let at_once = (16 / self.dtype.size().max(1)) as i64;
        let bytes = |shape: &[i64]| crate::numel(shape).max(0) as u64 * self.dtype.size();
        let padded = |shape: &[i64], dims: std::ops::Range<usize>| {
            let mut shape = shape.to_vec();
            for size in shape.get_mut(dims).into_iter().flatten() {
                *size = (*size + at_once - 1) / at_once * at_once;
            }
            bytes(&shape)
        };
        tables::Operands {
            plain: [bytes(&self.input), bytes(&self.weight), bytes(&self.output)],
            padded: [padded(&self.input, 1..2), padded(&self.weight, 0..2), padded(&self.output, 1..2)],
            partial: crate::numel(&self.weight).max(0) as u64 * 4,
            batch: value_of_dim(&self.input, 0).max(0) as u64,
        }
    }

    /// The question about the workspace of a pass. A transposed convolution is asked about as the gradient of
    /// a convolution's input, and its input's gradient as a convolution.
    fn request(&self, pass: Pass) -> tables::WorkspaceRequest<'_> {
        let is_transposed = self.settings.is_transposed;
        let (input, output) =
            if is_transposed { (&self.output, &self.input) } else { (&self.input, &self.output) };
        tables::WorkspaceRequest {
            operation: match pass {
                Pass::Forward => usize::from(is_transposed),
                Pass::Input => usize::from(!is_transposed),
                Pass::Weight => 2,
            },
            dtype: self.dtype as i64,
            element_bytes: self.dtype.size(),
            is_channels_last: self.format != MemoryFormat::Contiguous,
            input,
            filter: &self.weight,
            output,
            stride: &self.settings.stride,
            padding: &self.settings.padding,
            dilation: &self.settings.dilation,
        }
    }

    /// Allocates cuDNN's workspace and frees it. A size that was not recorded is marked as an estimate.
    pub(super) fn workspace(&self, pass: Pass) -> Result<()> {
        if self.backend != Backend::Cudnn {
            return Ok(());
        }
        let (numbers, operands) = (self.numbers(pass), self.operands());
        let name = if self.settings.is_transposed { "conv_transpose" } else { "conv" };
        if let Some(reason) = session().engine_setting() {
            session().note_estimate(name, reason);
        }
        let size = tables::lookup(&numbers, &operands).unwrap_or_else(|| {
            session().note_estimate(name, "cuDNN's workspace for this convolution was not recorded");
            tables::estimate(&self.request(pass)).unwrap_or_else(|| operands.plain.iter().sum())
        });
        drop(temporary(self.device, size)?);
        Ok(())
    }
}
