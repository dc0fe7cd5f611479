//! The table of operator calls (`calls.txt`) and how a line of it becomes a call.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};

use blockyard_device::Random;

const TABLE: &str = include_str!("calls.txt");

/// Sizes of dimensions. Those above 100 are rare, so that most calls are small enough for a person to read.
const DIMENSIONS: &[usize] =
    &[1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 31, 32, 33, 64, 100, 128, 255, 256, 500, 512, 1000, 1024, 2048, 4096];

/// The most elements of an argument.
const MAX_ELEMENTS: usize = 1 << 24;

/// A line of the table.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    pub(crate) family: &'static str,
    expression: &'static str,
    arguments: Vec<Argument>,
    /// Whether no gradient is asked for.
    pub(crate) is_without_gradient: bool,
    /// Whether channels last is a possible layout of the arguments.
    has_channels_last: bool,
    /// Whether the call also runs under autocast.
    pub(crate) is_for_autocast: bool,
}

/// The type of an argument's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The floating type of the call.
    Floating,
    /// Any type.
    Any,
    Integer,
    Bool,
    /// Integers below a dimension.
    Index,
}

/// An argument as a line of the table declares it.
#[derive(Clone, Debug)]
struct Argument {
    name: &'static str,
    kind: Kind,
    /// The dimensions as the table writes them: letters and sizes with commas (equal letters have equal
    /// sizes), `*` for any shape, `=NAME` or `~NAME` for the shape of another argument or one that broadcasts
    /// with it.
    dimensions: &'static str,
    /// Whether the argument is never a view.
    is_plain: bool,
}

/// An argument of a call: how the argument is made, and whether a gradient can be asked for.
#[derive(Clone, Debug)]
pub(crate) struct CallArgument {
    pub(crate) name: &'static str,
    pub(crate) text: String,
    pub(crate) can_have_gradient: bool,
}

/// An expression with its arguments.
#[derive(Clone, Debug)]
pub(crate) struct FilledTemplate {
    pub(crate) expression: String,
    pub(crate) arguments: Vec<CallArgument>,
}

/// All lines of the table.
pub(crate) fn templates() -> Result<Vec<Template>> {
    let lines = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| parse(line).with_context(|| line.to_owned())).collect()
}

fn parse(line: &'static str) -> Result<Template> {
    let parts: Vec<&str> = line.split(" | ").map(str::trim).collect();
    let (family, expression, arguments, how) = match parts[..] {
        [family, expression, arguments, how] => (family, expression, arguments, how),
        [family, expression, arguments] => (family, expression, arguments.trim_end_matches(" |"), ""),
        _ => bail!("a line has a family, an expression, arguments and how"),
    };
    let mut parsed = Vec::new();
    for text in arguments.split(' ').filter(|text| !text.is_empty()) {
        let (name, rest) = text.split_once('=').context("an argument has a name")?;
        let is_plain = rest.ends_with('.');
        let rest = rest.trim_end_matches('.').strip_suffix(']').context("dimensions end in ]")?;
        let (kind, dimensions) = rest.split_once('[').context("dimensions begin with [")?;
        let kind = match kind.chars().next() {
            Some('f') => Kind::Floating,
            Some('m') => Kind::Any,
            Some('i') => Kind::Integer,
            Some('b') => Kind::Bool,
            Some('x') => Kind::Index,
            _ => bail!("no kind {kind}"),
        };
        parsed.push(Argument { name, kind, dimensions, is_plain });
    }
    Ok(Template {
        family,
        expression,
        arguments: parsed,
        is_without_gradient: how.contains('g'),
        has_channels_last: how.contains('c'),
        is_for_autocast: how.contains('d'),
    })
}

impl Template {
    /// How often the line is chosen: once for each choice of its first braces.
    pub(crate) fn weight(&self) -> usize {
        let braces = self.expression.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
        braces.map_or(2, |(inside, _)| inside.matches('|').count() + 2).min(24)
    }

    /// Whether the family or the expression contains a text.
    pub(crate) fn mentions(&self, text: &str) -> bool {
        self.family.contains(text) || self.expression.contains(text)
    }

    /// A call of this line.
    pub(crate) fn fill(&self, random: &mut Random) -> FilledTemplate {
        let wide = random.pick(&["float32", "float32", "float32", "float16", "bfloat16", "float64"]);
        let most = random.pick(&[9, 13, 16, 24]);
        let mut drawn =
            CallGenerator { random, letters: BTreeMap::new(), shapes: BTreeMap::new(), wide, most };
        let arguments =
            self.arguments.iter().map(|argument| drawn.argument(argument, self.has_channels_last)).collect();
        FilledTemplate { expression: drawn.expression(self.expression), arguments }
    }
}

/// The sizes and types that were chosen for a call so far.
struct CallGenerator<'a> {
    random: &'a mut Random,
    letters: BTreeMap<char, usize>,
    shapes: BTreeMap<&'static str, Vec<usize>>,
    wide: &'static str,
    /// How many of [`DIMENSIONS`], from the smallest on, a dimension may have.
    most: usize,
}

const TYPES: &[&str] = &[
    "float32", "float16", "bfloat16", "float64", "int64", "int32", "int16", "int8", "uint8", "bool",
    "float32", "int64",
];

impl CallGenerator<'_> {
    fn size(&mut self, least: usize) -> usize {
        let sizes = DIMENSIONS.get(..self.most).unwrap_or(DIMENSIONS);
        self.random.pick(sizes).max(least)
    }

    fn any_shape(&mut self, least: usize, most: usize) -> Vec<usize> {
        let rank = least + self.random.index(most.saturating_sub(least) + 1);
        (0..rank).map(|_| self.size(1)).collect()
    }

    fn letter(&mut self, letter: char, least: usize) -> usize {
        if let Some(size) = self.letters.get(&letter) {
            return *size;
        }
        let size = self.size(least);
        self.letters.insert(letter, size);
        size
    }

    fn shape(&mut self, dimensions: &str) -> Vec<usize> {
        if let Some(other) = dimensions.strip_prefix('=') {
            return self.shapes.get(other).cloned().unwrap_or_default();
        }
        if let Some(shape) = dimensions.strip_prefix('~').and_then(|other| self.shapes.get(other).cloned()) {
            return self.broadcast(&shape);
        }
        let mut shape = Vec::new();
        for part in dimensions.split(',').filter(|part| !part.is_empty()) {
            match part {
                "*" => shape.extend(self.any_shape(0, 4)),
                "*1" => shape.extend(self.any_shape(1, 2)),
                part => shape.push(self.dimension(part)),
            }
        }
        shape
    }

    fn dimension(&mut self, part: &str) -> usize {
        if let Ok(size) = part.parse() {
            return size;
        }
        let (is_broadcast, part) = part.strip_prefix('~').map_or((false, part), |part| (true, part));
        let mut letters = part.chars();
        let letter = letters.next().unwrap_or('A');
        let size = self.letter(letter, letters.as_str().parse().unwrap_or(1));
        if is_broadcast && self.random.percent(40) { 1 } else { size }
    }

    /// A shape that broadcasts with the given one, most often the same shape.
    fn broadcast(&mut self, shape: &[usize]) -> Vec<usize> {
        let mut other = shape.to_vec();
        if self.random.percent(60) {
            return other;
        }
        if self.random.percent(50) {
            other.drain(..self.random.index(shape.len() + 1));
        }
        for size in &mut other {
            if self.random.percent(40) {
                *size = 1;
            }
        }
        other
    }

    fn argument(&mut self, argument: &Argument, has_channels_last: bool) -> CallArgument {
        let mut shape = self.shape(argument.dimensions);
        while shape.iter().product::<usize>() > MAX_ELEMENTS {
            // The letters stay as drawn: such a call ends in an error of both sides, if sizes had to be
            // equal.
            if let Some(largest) = shape.iter_mut().max() {
                *largest /= 16;
            }
        }
        self.shapes.insert(argument.name, shape.clone());
        let dtype = match argument.kind {
            Kind::Floating => self.wide,
            Kind::Any => self.random.pick(TYPES),
            Kind::Integer | Kind::Index => "int64",
            Kind::Bool => "bool",
        };
        let text = self.layout(&shape, dtype, argument.is_plain, has_channels_last);
        CallArgument { name: argument.name, text, can_have_gradient: argument.kind == Kind::Floating }
    }

    fn layout(&mut self, shape: &[usize], dtype: &str, is_plain: bool, has_channels_last: bool) -> String {
        let empty = |shape: &[usize]| {
            let sizes: Vec<String> = shape.iter().map(ToString::to_string).collect();
            format!(
                "torch.empty(({}{}), device=\"cuda\", dtype=torch.{dtype}",
                sizes.join(", "),
                if shape.len() == 1 { "," } else { "" }
            )
        };
        let plain = format!("{})", empty(shape));
        if has_channels_last && shape.len() == 4 && self.random.percent(30) {
            return format!("{}, memory_format=torch.channels_last)", empty(shape));
        }
        if is_plain || shape.is_empty() || self.random.percent(60) {
            return plain;
        }
        let dim = self.random.index(shape.len());
        let commas = ":, ".repeat(dim);
        let mut base = shape.to_vec();
        match self.random.index(4) {
            0 | 1 if shape.len() > 1 => {
                let other = self.random.index(shape.len());
                base.swap(dim, other);
                format!("{}).transpose({dim}, {other})", empty(&base))
            }
            2 => {
                base.iter_mut().skip(dim).take(1).for_each(|size| *size = 1);
                let sizes: Vec<String> = shape.iter().map(ToString::to_string).collect();
                format!("{}).expand({})", empty(&base), sizes.join(", "))
            }
            _ if self.random.percent(50) => {
                base.iter_mut().skip(dim).take(1).for_each(|size| *size *= 2);
                format!("{})[{commas}::2]", empty(&base))
            }
            _ => {
                base.iter_mut().skip(dim).take(1).for_each(|size| *size += 1);
                format!("{})[{commas}1:]", empty(&base))
            }
        }
    }

    fn expression(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((inside, after)) = after.split_once('}') else { break };
            out.push_str(before);
            out.push_str(&self.brace(inside));
            rest = after;
        }
        out + rest
    }

    fn brace(&mut self, inside: &str) -> String {
        if inside == "wide" {
            return format!("torch.{}", self.wide);
        }
        if let Some(name) = inside.strip_prefix("dim ") {
            let rank = self.shapes.get(name).map_or(1, Vec::len).max(1);
            let dim = self.random.index(rank);
            return if self.random.percent(30) { format!("-{}", rank - dim) } else { dim.to_string() };
        }
        if let Some(name) = inside.strip_prefix("dims ") {
            let rank = self.shapes.get(name).map_or(0, Vec::len);
            let mut dims: Vec<String> =
                (0..rank).filter(|_| self.random.percent(50)).map(|dim| dim.to_string()).collect();
            if dims.is_empty() && rank > 0 {
                dims.push("0".to_owned());
            }
            return format!("({}{})", dims.join(", "), if dims.len() == 1 { "," } else { "" });
        }
        if let Some((low, high)) = inside.split_once("..")
            && let (Ok(low), Ok(high)) = (low.parse::<usize>(), high.parse::<usize>())
        {
            return (low + self.random.index(high.saturating_sub(low) + 1)).to_string();
        }
        let mut letters = inside.chars();
        if let (Some(letter), None) = (letters.next(), letters.next())
            && letter.is_ascii_uppercase()
        {
            return self.letter(letter, 1).to_string();
        }
        let choices: Vec<&str> = inside.split('|').collect();
        self.random.pick(&choices).to_owned()
    }
}
