//! Calls of operators, and a program that makes many of them.

use std::fmt::Write as _;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::cycles;
use super::template::{FilledTemplate, Template, templates};
use blockyard_device::Random;

/// The family of whole programs.
pub(crate) const PROGRAMS: &str = "programs";

/// The first word of the families of programs with cycles of references.
pub(crate) const CYCLES: &str = "cycles";

/// The first lines of every program.
const PRELUDE: &str = "\
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.distributions as D
import time
D.Distribution.set_default_validate_args(False)
def rest(y):
    # The thread of the backward pass lets go of the last gradients once it gets Python's lock.
    time.sleep(0.002)
    return y
from torch.utils.checkpoint import checkpoint
def back(y):
    ts = [t for t in (y if isinstance(y, (tuple, list)) else [y]) if isinstance(t, torch.Tensor) and t.requires_grad]
    if ts:
        torch.autograd.backward(ts, [torch.ones_like(t) for t in ts])
def back_sum(y):
    ts = [t for t in (y if isinstance(y, (tuple, list)) else [y]) if isinstance(t, torch.Tensor) and t.requires_grad]
    if ts:
        torch.autograd.backward([t.sum() for t in ts])
def run(n, f):
    try:
        f()
    except Exception as e:
        print('!', type(e).__name__, str(e).split('\\n')[0])
    print('#', n)
";

/// A first call of matrix products, which takes the workspaces of libraries. The workspaces are kept for all
/// later calls.
const WARM: &str = "\
def warm():
    x = torch.ones(4, 4, device='cuda', requires_grad=True)
    b = torch.ones(4, device='cuda', requires_grad=True)
    F.linear(x @ x, x, b).sum().backward()
run(-1, warm)
";

/// A call of an operator: the body of a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The group of operators that the call belongs to.
    pub family: String,
    /// The operator and the circumstance of the call.
    pub operator: String,
    /// The lines of the function's body, not indented.
    pub body: String,
}

/// The mode or context in which a call runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Circumstance {
    #[default]
    Plain,
    AutocastHalf,
    AutocastBfloat16,
    NoGrad,
    Inference,
    Checkpoint,
}

impl Circumstance {
    fn with(self) -> Option<&'static str> {
        match self {
            Self::Plain | Self::Checkpoint => None,
            Self::AutocastHalf => Some("torch.autocast(\"cuda\", dtype=torch.float16)"),
            Self::AutocastBfloat16 => Some("torch.autocast(\"cuda\", dtype=torch.bfloat16)"),
            Self::NoGrad => Some("torch.no_grad()"),
            Self::Inference => Some("torch.inference_mode()"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::AutocastHalf | Self::AutocastBfloat16 => " autocast",
            Self::NoGrad => " no_grad",
            Self::Inference => " inference_mode",
            Self::Checkpoint => " checkpoint",
        }
    }
}

/// Makes calls from a seed.
#[derive(Debug)]
pub struct Calls {
    random: Random,
    templates: Vec<Template>,
    /// The index of each template, as many times as the template's weight.
    weighted: Vec<usize>,
}

impl Calls {
    /// The calls of this seed, of all families or of those whose lines contain a text.
    ///
    /// # Errors
    ///
    /// A line of the table that is not understood.
    pub fn new(seed: u64, only: Option<&str>) -> Result<Self> {
        let mut templates = templates()?;
        if let Some(only) = only {
            templates.retain(|template| template.mentions(only));
        }
        let weighted = templates
            .iter()
            .enumerate()
            .flat_map(|(index, template)| std::iter::repeat_n(index, template.weight()))
            .collect();
        Ok(Self { random: Random::new(seed), templates, weighted })
    }

    fn circumstance(&mut self, template: &Template, has_gradient: bool) -> Circumstance {
        use Circumstance::{AutocastBfloat16, AutocastHalf, Checkpoint, Inference, NoGrad, Plain};
        let drawn = self.random.pick(&[
            Plain,
            Plain,
            Plain,
            Plain,
            Plain,
            AutocastHalf,
            AutocastBfloat16,
            NoGrad,
            Inference,
            Checkpoint,
        ]);
        match drawn {
            AutocastHalf | AutocastBfloat16 if !template.is_for_autocast => Plain,
            Checkpoint if !has_gradient => Plain,
            other => other,
        }
    }
}

impl Iterator for Calls {
    type Item = Call;

    fn next(&mut self) -> Option<Call> {
        let index = self.random.pick(&self.weighted);
        let template = self.templates.get(index)?.clone();
        let filled = template.fill(&mut self.random);
        let wants_gradient = !template.is_without_gradient && self.random.percent(75);
        let mut body = String::new();
        let mut has_gradient = false;
        for made in &filled.arguments {
            let asks = wants_gradient && made.can_have_gradient && self.random.percent(80);
            has_gradient |= asks;
            let ending = if !asks {
                ""
            } else if made.text.ends_with(')') && !made.text.contains(").") {
                ".requires_grad_()"
            } else {
                ".detach().requires_grad_()"
            };
            let _ = writeln!(body, "{} = {}{ending}", made.name, made.text);
        }
        let circumstance = self.circumstance(&template, has_gradient);
        let has_backward =
            has_gradient && !matches!(circumstance, Circumstance::NoGrad | Circumstance::Inference);
        let statement = statement(&filled, circumstance);
        let back = if self.random.percent(60) { "back(y)\n" } else { "back_sum(y)\n" };
        let step = if has_backward { format!("{statement}{back}") } else { statement };
        body += &step;
        if has_backward && self.random.percent(10) {
            body += &step;
        }
        Some(Call {
            family: template.family.to_owned(),
            operator: format!("{}{}", operator(&filled.expression), circumstance.name()),
            body,
        })
    }
}

fn statement(filled: &FilledTemplate, circumstance: Circumstance) -> String {
    let expression = &filled.expression;
    if circumstance == Circumstance::Checkpoint {
        let names: Vec<&str> = filled.arguments.iter().map(|made| made.name).collect();
        let names = names.join(", ");
        return format!("y = checkpoint(lambda {names}: {expression}, {names}, use_reentrant=False)\n");
    }
    match circumstance.with() {
        Some(with) => format!("with {with}:\n    y = {expression}\n"),
        None => format!("y = {expression}\n"),
    }
}

/// The operator of an expression: the first name that is called, other than those that only make its
/// arguments; else the expression itself.
fn operator(expression: &str) -> String {
    let mut names = expression.split('(').map(|part| {
        part.rsplit(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.')).next().unwrap_or_default()
    });
    let name = names.find(|name| {
        let last = name.rsplit('.').next().unwrap_or_default();
        !matches!(last, "" | "rest" | "clone" | "permute" | "expand" | "sigmoid" | "log_softmax")
            || *name == expression.split('(').next().unwrap_or_default() && name.starts_with("torch.")
    });
    let mut name = name
        .map_or_else(|| expression.to_owned(), |name| name.rsplit('.').next().unwrap_or_default().to_owned());
    if expression.contains("out=") {
        name += " out=";
    }
    name
}

/// A program that makes these calls, one function each. Whole programs find the libraries' workspaces as a
/// process has them at its start.
pub fn program(calls: &[Call]) -> String {
    let mut text = PRELUDE.to_owned();
    if calls.iter().any(|call| call.family.starts_with(CYCLES)) {
        text += cycles::PRELUDE;
    }
    if !calls.iter().all(|call| call.family == PROGRAMS) {
        text += WARM;
    }
    for (number, call) in calls.iter().enumerate() {
        text += "def f():\n";
        for line in call.body.lines() {
            let _ = writeln!(text, "    {line}");
        }
        let _ = writeln!(text, "run({number}, f)");
    }
    text
}
