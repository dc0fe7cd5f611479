//! `_random`: the Mersenne Twister, with CPython's way to seed it and to draw from it.

pub(crate) use _random::module_def;

const LENGTH: usize = 624;
const MIDDLE: usize = 397;

/// The generator of Matsumoto and Nishimura.
#[derive(Clone, Debug)]
pub(crate) struct MersenneTwister {
    state: [u32; LENGTH],
    next: usize,
}

impl MersenneTwister {
    /// A generator that is seeded by one word (`init_genrand`).
    pub(crate) fn from_word(seed: u32) -> Self {
        let mut state = [0; LENGTH];
        let mut word = seed;
        for (index, slot) in (0_u32..).zip(&mut state) {
            if index > 0 {
                word = 1_812_433_253_u32.wrapping_mul(word ^ (word >> 30)).wrapping_add(index);
            }
            *slot = word;
        }
        Self { state, next: LENGTH }
    }

    /// A generator that is seeded by several words, least significant first (`init_by_array`).
    pub(crate) fn from_words(key: &[u32]) -> Self {
        let mut generator = Self::from_word(19_650_218);
        let key = if key.is_empty() { &[0] } else { key };
        let state = &mut generator.state;
        let mut at = 1;
        let advance = |state: &mut [u32; LENGTH], at: &mut usize| {
            *at += 1;
            if *at >= LENGTH {
                state[0] = state[LENGTH - 1];
                *at = 1;
            }
        };
        let mixed = |state: &[u32; LENGTH], at: usize| state[at - 1] ^ (state[at - 1] >> 30);
        for (index, word) in (0_u32..).zip(key).cycle().take(LENGTH.max(key.len())) {
            let mix = mixed(state, at).wrapping_mul(1_664_525);
            state[at] = (state[at] ^ mix).wrapping_add(*word).wrapping_add(index);
            advance(state, &mut at);
        }
        for _ in 1..LENGTH {
            let mix = mixed(state, at).wrapping_mul(1_566_083_941);
            // Both at most 623, so that the cast loses nothing.
            #[expect(clippy::cast_possible_truncation, reason = "an index below 624")]
            let index = at as u32;
            state[at] = (state[at] ^ mix).wrapping_sub(index);
            advance(state, &mut at);
        }
        state[0] = 0x8000_0000;
        generator
    }

    fn refill(&mut self) {
        let state = &mut self.state;
        for index in 0..LENGTH {
            let word = (state[index] & 0x8000_0000) | (state[(index + 1) % LENGTH] & 0x7fff_ffff);
            let twist = if word & 1 == 0 { 0 } else { 0x9908_b0df };
            state[index] = state[(index + MIDDLE) % LENGTH] ^ (word >> 1) ^ twist;
        }
        self.next = 0;
    }

    /// The next 32 random bits (`genrand_uint32`).
    pub(crate) fn next_u32(&mut self) -> u32 {
        if self.next >= LENGTH {
            self.refill();
        }
        let mut word = self.state[self.next];
        self.next += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    /// A number from 0 to 1, 1 excluded, of 53 random bits.
    pub(crate) fn next_f64(&mut self) -> f64 {
        let (high, low) = (self.next_u32() >> 5, self.next_u32() >> 6);
        (f64::from(high) * 67_108_864.0 + f64::from(low)) / 9_007_199_254_740_992.0
    }

    fn words(&self) -> impl Iterator<Item = u32> {
        #[expect(clippy::cast_possible_truncation, reason = "at most 624")]
        let next = self.next as u32;
        self.state.iter().copied().chain([next])
    }

    fn restore(words: &[u32]) -> Option<Self> {
        let (next, state) = words.split_last()?;
        let next = usize::try_from(*next).ok().filter(|next| *next <= LENGTH)?;
        Some(Self { state: state.try_into().ok()?, next })
    }
}

#[rustpython_vm::pymodule]
mod _random {
    use rustpython_vm::builtins::{PyIntRef, PyTupleRef, PyType};
    use rustpython_vm::common::lock::PyMutex;
    use rustpython_vm::function::FuncArgs;
    use rustpython_vm::types::Constructor;
    use rustpython_vm::{Py, PyObjectRef, PyPayload, PyResult, TryFromObject, VirtualMachine, pyclass};

    use super::MersenneTwister;

    #[pyattr]
    #[pyclass(name = "Random", module = "_random")]
    #[derive(Debug, PyPayload)]
    struct Random {
        generator: PyMutex<MersenneTwister>,
    }

    impl Constructor for Random {
        type Args = FuncArgs;

        fn py_new(_class: &Py<PyType>, _args: FuncArgs, _vm: &VirtualMachine) -> PyResult<Self> {
            Ok(Self { generator: PyMutex::new(MersenneTwister::from_words(&[0])) })
        }
    }

    #[pyclass(flags(BASETYPE, HAS_DICT), with(Constructor))]
    impl Random {
        #[pymethod]
        fn seed(&self, seed: PyIntRef) {
            let (_sign, words) = seed.as_bigint().to_u32_digits();
            *self.generator.lock() = MersenneTwister::from_words(&words);
        }

        /// Seeds by one word, as `NumPy` and PyTorch do.
        #[pymethod]
        fn seed_word(&self, seed: PyIntRef) {
            let (_sign, words) = seed.as_bigint().to_u32_digits();
            *self.generator.lock() = MersenneTwister::from_word(words.first().copied().unwrap_or(0));
        }

        #[pymethod]
        fn random(&self) -> f64 {
            self.generator.lock().next_f64()
        }

        #[pymethod]
        fn getrandbits(&self, count: i64, vm: &VirtualMachine) -> PyResult {
            let count = usize::try_from(count)
                .map_err(|_negative| vm.new_value_error("number of bits must be non-negative"))?;
            let mut generator = self.generator.lock();
            let mut words = Vec::with_capacity(count.div_ceil(32));
            let mut left = count;
            while left > 0 {
                let word = generator.next_u32();
                words.push(if left < 32 { word >> (32 - left) } else { word });
                left = left.saturating_sub(32);
            }
            let value = words
                .iter()
                .rev()
                .fold(malachite_bigint::BigInt::from(0), |value, word| (value << 32) + *word);
            Ok(vm.ctx.new_bigint(&value).into())
        }

        #[pymethod]
        fn getstate(&self, vm: &VirtualMachine) -> PyTupleRef {
            vm.ctx.new_tuple(self.generator.lock().words().map(|word| vm.ctx.new_int(word).into()).collect())
        }

        #[pymethod]
        fn setstate(&self, state: PyTupleRef, vm: &VirtualMachine) -> PyResult<()> {
            let words: Vec<u32> = state
                .iter()
                .map(|word: &PyObjectRef| u32::try_from_object(vm, word.clone()))
                .collect::<PyResult<_>>()?;
            let generator = MersenneTwister::restore(&words)
                .ok_or_else(|| vm.new_value_error("state vector is the wrong size"))?;
            *self.generator.lock() = generator;
            Ok(())
        }
    }
}
