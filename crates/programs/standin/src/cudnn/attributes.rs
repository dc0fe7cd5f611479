//! The numbers of cuDNN's backend interface that the stand-in reads: kinds of descriptors, attributes, types
//! of values.

use std::ffi::c_int;

/// `cudnnBackendDescriptorType_t`.
pub(super) mod kind {
    use super::c_int;

    pub(crate) const ENGINE: c_int = 2;
    pub(crate) const EXECUTION_PLAN: c_int = 5;
    pub(crate) const CONVOLUTION_FORWARD: c_int = 10;
    pub(crate) const CONVOLUTION_BACKWARD_FILTER: c_int = 11;
    pub(crate) const CONVOLUTION_BACKWARD_DATA: c_int = 12;
    pub(crate) const PRODUCT: c_int = 19;
    pub(crate) const ATTENTION: c_int = 41;
}

/// `cudnnBackendAttributeName_t`.
pub(super) mod name {
    use super::c_int;

    pub(crate) const CONVOLUTION_DILATIONS: c_int = 102;
    pub(crate) const CONVOLUTION_STRIDES: c_int = 103;
    pub(crate) const CONVOLUTION_PRE_PADDINGS: c_int = 105;
    pub(crate) const HEURISTICS_MODE: c_int = 200;
    pub(crate) const HEURISTICS_GRAPH: c_int = 201;
    pub(crate) const HEURISTICS_RESULTS: c_int = 202;
    pub(crate) const CONFIG_ENGINE: c_int = 300;
    pub(crate) const CONFIG_INTERMEDIATES: c_int = 301;
    pub(crate) const CONFIG_KNOBS: c_int = 302;
    pub(crate) const CONFIG_WORKSPACE: c_int = 303;
    pub(crate) const CONFIG_SHARED_MEMORY: c_int = 304;
    pub(crate) const PLAN_CONFIG: c_int = 401;
    pub(crate) const PLAN_WORKSPACE: c_int = 402;
    pub(crate) const PLAN_JSON: c_int = 405;
    pub(crate) const GRAPH_OPERATIONS: c_int = 801;
    pub(crate) const GRAPH_ENGINE_COUNT: c_int = 802;
    /// Not of cuDNN: the graph's engines were asked for to be tried.
    pub(crate) const GRAPH_IS_TRIED: c_int = -1;
    pub(crate) const TENSOR_TYPE: c_int = 901;
    pub(crate) const TENSOR_DIMENSIONS: c_int = 902;
    pub(crate) const TENSOR_STRIDES: c_int = 903;
    pub(crate) const ENGINE_GRAPH: c_int = 1300;
    pub(crate) const ENGINE_INDEX: c_int = 1301;
    /// The matrices of a product.
    pub(crate) const PRODUCT_A: c_int = 1520;
    pub(crate) const PRODUCT_B: c_int = 1521;
    /// Queries and keys of attention in one operation.
    pub(crate) const ATTENTION_QUERIES: c_int = 2800;
    pub(crate) const ATTENTION_KEYS: c_int = 2801;
    /// Convolution, input, filter, output of each direction.
    pub(crate) const FORWARD: [c_int; 4] = [702, 704, 703, 705];
    pub(crate) const BACKWARD_DATA: [c_int; 4] = [708, 710, 709, 711];
    pub(crate) const BACKWARD_FILTER: [c_int; 4] = [714, 716, 715, 717];
}

/// `CUDNN_HEUR_MODE_FALLBACK`: the list of engines for where those of the heuristics fail.
pub(super) const FALLBACK: c_int = 2;

/// `cudnnBackendAttributeType_t`: descriptors are values too.
pub(super) const DESCRIPTOR: c_int = 15;

/// Bytes of a value of this type.
pub(super) fn size_of(kind: c_int) -> usize {
    match kind {
        // Boolean, character.
        2 | 24 => 1,
        // Fraction.
        26 => 16,
        // Handle, int64, double, address, descriptor.
        0 | 3 | 5 | 6 | DESCRIPTOR => 8,
        // Types and modes are enumerations.
        _ => 4,
    }
}
