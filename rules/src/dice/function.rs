//! The functions that a formula may call: those of JavaScript's `Math`, which Foundry offers, and `clamp`.
//!
//! Names are case-sensitive, as in Foundry. `random` is missing on purpose, because every random number must be a reported
//! die. To add a function, add a line to `FUNCTIONS` and an arm to `apply`.

/// A function of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Abs,
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atan2,
    Atanh,
    Cbrt,
    Ceil,
    Clamp,
    Clz32,
    Cos,
    Cosh,
    Exp,
    Expm1,
    Floor,
    Fround,
    Hypot,
    Imul,
    Log,
    Log10,
    Log1p,
    Log2,
    Max,
    Min,
    Pow,
    Round,
    Sign,
    Sin,
    Sinh,
    Sqrt,
    Tan,
    Tanh,
    Trunc,
}

/// Name, function, minimum and maximum number of arguments.
type Entry = (&'static str, Function, u8, u8);

/// The most arguments of a function with any number of them.
pub(super) const ARGUMENTS_MAX: u8 = 100;

/// All functions, common ones first because the list is searched from its beginning.
const FUNCTIONS: [Entry; 35] = [
    ("floor", Function::Floor, 1, 1),
    ("max", Function::Max, 1, ARGUMENTS_MAX),
    ("min", Function::Min, 1, ARGUMENTS_MAX),
    ("ceil", Function::Ceil, 1, 1),
    ("round", Function::Round, 1, 1),
    ("abs", Function::Abs, 1, 1),
    ("clamp", Function::Clamp, 3, 3),
    ("acos", Function::Acos, 1, 1),
    ("acosh", Function::Acosh, 1, 1),
    ("asin", Function::Asin, 1, 1),
    ("asinh", Function::Asinh, 1, 1),
    ("atan", Function::Atan, 1, 1),
    ("atan2", Function::Atan2, 2, 2),
    ("atanh", Function::Atanh, 1, 1),
    ("cbrt", Function::Cbrt, 1, 1),
    ("clz32", Function::Clz32, 1, 1),
    ("cos", Function::Cos, 1, 1),
    ("cosh", Function::Cosh, 1, 1),
    ("exp", Function::Exp, 1, 1),
    ("expm1", Function::Expm1, 1, 1),
    ("fround", Function::Fround, 1, 1),
    ("hypot", Function::Hypot, 1, ARGUMENTS_MAX),
    ("imul", Function::Imul, 2, 2),
    ("log", Function::Log, 1, 1),
    ("log10", Function::Log10, 1, 1),
    ("log1p", Function::Log1p, 1, 1),
    ("log2", Function::Log2, 1, 1),
    ("pow", Function::Pow, 2, 2),
    ("sign", Function::Sign, 1, 1),
    ("sin", Function::Sin, 1, 1),
    ("sinh", Function::Sinh, 1, 1),
    ("sqrt", Function::Sqrt, 1, 1),
    ("tan", Function::Tan, 1, 1),
    ("tanh", Function::Tanh, 1, 1),
    ("trunc", Function::Trunc, 1, 1),
];

impl Function {
    /// The function with this name, and its minimum and maximum number of arguments.
    pub(super) fn find(name: &str) -> Option<(Self, u8, u8)> {
        FUNCTIONS.iter().find(|f| f.0 == name).map(|f| (f.1, f.2, f.3))
    }

    /// The function whose name differs from this one only in case.
    pub(super) fn find_any_case(name: &str) -> Option<&'static str> {
        FUNCTIONS.iter().find(|f| f.0.eq_ignore_ascii_case(name)).map(|f| f.0)
    }

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        FUNCTIONS.iter().find(|f| f.1 == self).map_or("", |f| f.0)
    }

    /// The function's value. The parser has checked the number of arguments; a missing one would count as 0. The result
    /// may not be finite.
    pub(super) fn apply(self, arguments: &[f64]) -> f64 {
        let argument = |index: usize| arguments.get(index).copied().unwrap_or(0.0);
        match self {
            Self::Max => arguments.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Self::Min => arguments.iter().copied().fold(f64::INFINITY, f64::min),
            Self::Hypot => arguments.iter().copied().fold(0.0, f64::hypot),
            Self::Atan2 => argument(0).atan2(argument(1)),
            Self::Pow => argument(0).powf(argument(1)),
            Self::Imul => f64::from(to_int32(argument(0)).wrapping_mul(to_int32(argument(1)))),
            Self::Clamp => argument(0).max(argument(1)).min(argument(2)),
            one => one.apply_one(argument(0)),
        }
    }

    /// Functions with one argument.
    fn apply_one(self, x: f64) -> f64 {
        match self {
            Self::Abs => x.abs(),
            Self::Acos => x.acos(),
            Self::Acosh => x.acosh(),
            Self::Asin => x.asin(),
            Self::Asinh => x.asinh(),
            Self::Atan => x.atan(),
            Self::Atanh => x.atanh(),
            Self::Cbrt => x.cbrt(),
            Self::Ceil => x.ceil(),
            Self::Clz32 => f64::from(to_int32(x).leading_zeros()),
            Self::Cos => x.cos(),
            Self::Cosh => x.cosh(),
            Self::Exp => x.exp(),
            Self::Expm1 => x.exp_m1(),
            Self::Floor => x.floor(),
            Self::Fround => fround(x),
            Self::Log => x.ln(),
            Self::Log10 => x.log10(),
            Self::Log1p => x.ln_1p(),
            Self::Log2 => x.log2(),
            Self::Round => round(x),
            Self::Sign => sign(x),
            Self::Sin => x.sin(),
            Self::Sinh => x.sinh(),
            Self::Sqrt => x.sqrt(),
            Self::Tan => x.tan(),
            Self::Tanh => x.tanh(),
            Self::Trunc => x.trunc(),
            _ => x,
        }
    }

    /// Whether a larger argument never gives a smaller value. The bounds of the argument then give those of the value.
    pub(super) const fn rises(self) -> bool {
        matches!(
            self,
            Self::Asinh
                | Self::Atan
                | Self::Cbrt
                | Self::Ceil
                | Self::Exp
                | Self::Expm1
                | Self::Floor
                | Self::Fround
                | Self::Round
                | Self::Sign
                | Self::Sinh
                | Self::Sqrt
                | Self::Tanh
                | Self::Trunc
                | Self::Log
                | Self::Log10
                | Self::Log1p
                | Self::Log2
                | Self::Max
                | Self::Min
        )
    }
}

/// Rounds halves up, also below zero: `round(-2.5)` is -2, as in JavaScript.
fn round(x: f64) -> f64 {
    let below = x.floor();
    if x - below >= 0.5 { below + 1.0 } else { below }
}

fn sign(x: f64) -> f64 {
    if x > 0.0 {
        1.0
    } else if x < 0.0 {
        -1.0
    } else {
        x
    }
}

fn fround(x: f64) -> f64 {
    f64::from(x as f32)
}

/// The lowest 32 bits of the integer part, as a signed number.
fn to_int32(x: f64) -> i32 {
    let low = x.trunc().rem_euclid(4_294_967_296.0);
    (low as i64 as u32).cast_signed()
}
