//! `_math`: functions over floats; `math` adds those over integers in Python.

pub(crate) use _math::module_def;

#[rustpython_vm::pymodule]
mod _math {
    use rustpython_vm::function::ArgIntoFloat;
    use rustpython_vm::{PyObjectRef, PyResult, TryFromObject, VirtualMachine};

    fn domain(vm: &VirtualMachine) -> rustpython_vm::builtins::PyBaseExceptionRef {
        vm.new_value_error("math domain error")
    }

    /// A result that is not a number although the argument was one is an error, as is an infinite one.
    fn checked(argument: f64, result: f64, vm: &VirtualMachine) -> PyResult<f64> {
        if result.is_nan() && !argument.is_nan() {
            Err(domain(vm))
        } else if result.is_infinite() && argument.is_finite() {
            Err(vm.new_overflow_error("math range error"))
        } else {
            Ok(result)
        }
    }

    /// Calls the function of this name.
    #[pyfunction]
    fn unary(
        name: rustpython_vm::builtins::PyStrRef,
        argument: ArgIntoFloat,
        vm: &VirtualMachine,
    ) -> PyResult<f64> {
        let x: f64 = argument.into();
        let result = match name.to_string_lossy().as_ref() {
            "sqrt" => x.sqrt(),
            "cbrt" => x.cbrt(),
            "exp" => x.exp(),
            "exp2" => x.exp2(),
            "expm1" => x.exp_m1(),
            "sin" => x.sin(),
            "cos" => x.cos(),
            "tan" => x.tan(),
            "asin" => x.asin(),
            "acos" => x.acos(),
            "atan" => x.atan(),
            "sinh" => x.sinh(),
            "cosh" => x.cosh(),
            "tanh" => x.tanh(),
            "asinh" => x.asinh(),
            "acosh" => x.acosh(),
            "atanh" => x.atanh(),
            "erf" => libm::erf(x),
            "erfc" => libm::erfc(x),
            "gamma" => libm::tgamma(x),
            "lgamma" => libm::lgamma(x),
            "log1p" if x > -1.0 => x.ln_1p(),
            "fabs" => x.abs(),
            _ => f64::NAN,
        };
        checked(x, result, vm)
    }

    /// The natural logarithm; an integer may be larger than any float.
    #[pyfunction]
    fn ln(value: PyObjectRef, vm: &VirtualMachine) -> PyResult<f64> {
        logarithm(value, f64::ln, std::f64::consts::LN_2, vm)
    }

    #[pyfunction]
    fn log2(value: PyObjectRef, vm: &VirtualMachine) -> PyResult<f64> {
        logarithm(value, f64::log2, 1.0, vm)
    }

    #[pyfunction]
    fn log10(value: PyObjectRef, vm: &VirtualMachine) -> PyResult<f64> {
        logarithm(value, f64::log10, std::f64::consts::LOG10_2, vm)
    }

    fn logarithm(
        value: PyObjectRef,
        function: fn(f64) -> f64,
        of_two: f64,
        vm: &VirtualMachine,
    ) -> PyResult<f64> {
        let mut shifted: u64 = 0;
        let value = match value.downcast::<rustpython_vm::builtins::PyInt>() {
            Ok(integer) => {
                shifted = integer.as_bigint().bits().saturating_sub(1000);
                let reduced: malachite_bigint::BigInt = integer.as_bigint() >> shifted;
                reduced.to_string().parse().unwrap_or(f64::NAN)
            }
            Err(value) => ArgIntoFloat::try_from_object(vm, value)?.into(),
        };
        if value <= 0.0 {
            return Err(domain(vm));
        }
        #[expect(clippy::cast_precision_loss, reason = "a number of bits")]
        let shifted = shifted as f64;
        Ok(if shifted > 0.0 { function(value) + shifted * of_two } else { function(value) })
    }

    #[pyfunction]
    fn atan2(y: ArgIntoFloat, x: ArgIntoFloat) -> f64 {
        f64::from(y).atan2(f64::from(x))
    }

    #[pyfunction]
    fn fmod(x: ArgIntoFloat, y: ArgIntoFloat, vm: &VirtualMachine) -> PyResult<f64> {
        let (x, y) = (f64::from(x), f64::from(y));
        if x.is_infinite() || y == 0.0 { Err(domain(vm)) } else { Ok(x % y) }
    }

    #[pyfunction]
    fn pow(x: ArgIntoFloat, y: ArgIntoFloat, vm: &VirtualMachine) -> PyResult<f64> {
        let (x, y) = (f64::from(x), f64::from(y));
        if x == 0.0 && y < 0.0 { Err(domain(vm)) } else { checked(x, x.powf(y), vm) }
    }

    #[pyfunction]
    fn copysign(x: ArgIntoFloat, y: ArgIntoFloat) -> f64 {
        f64::from(x).copysign(f64::from(y))
    }

    #[pyfunction]
    fn hypot2(x: ArgIntoFloat, y: ArgIntoFloat) -> f64 {
        f64::from(x).hypot(f64::from(y))
    }

    #[pyfunction]
    fn frexp(x: ArgIntoFloat) -> (f64, i32) {
        libm::frexp(f64::from(x))
    }

    #[pyfunction]
    fn ldexp(x: ArgIntoFloat, exponent: i32) -> f64 {
        libm::ldexp(f64::from(x), exponent)
    }

    #[pyfunction]
    fn nextafter(x: ArgIntoFloat, y: ArgIntoFloat) -> f64 {
        libm::nextafter(f64::from(x), f64::from(y))
    }
}
