//! Small changes of an exercise's lines, which its author tries: a change that passes is a shortcut, or another
//! right answer.

use std::collections::BTreeSet;

use super::{Exercise, ExerciseLanguage};

/// An answer that nobody should pass with: the lines of the start or of the solution with one small change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// The change in a few words: `solution: on the CPU`.
    pub change: String,
    /// The reader's lines, for [`Exercise::with_region`].
    pub lines: String,
}

/// Calls of PyTorch that make a tensor of a size.
const FACTORIES: [&str; 5] = ["torch.randn", "torch.rand", "torch.ones", "torch.zeros", "torch.empty"];

impl Exercise {
    /// The changed answers that an author tries, each once, and the start itself. None is the solution.
    pub fn mutants(&self) -> Vec<Mutant> {
        let all: Vec<&str> = self.start.lines().collect();
        let start = all.get(self.region.clone()).unwrap_or_default().join("\n");
        let solution = self.solution().unwrap_or_default().to_owned();
        let is_python = self.language == ExerciseLanguage::Python;
        let mut mutants = vec![
            Mutant { change: "start: unchanged".to_owned(), lines: start.clone() },
            Mutant { change: "no lines".to_owned(), lines: String::new() },
        ];
        for (name, lines) in [("start", &start), ("solution", &solution)] {
            let mut add = |change: String, lines: String| {
                mutants.push(Mutant { change: format!("{name}: {change}"), lines });
            };
            without_lines(lines, &mut add);
            smaller(lines, &mut add);
            if is_python {
                of_program(lines, &mut add);
            }
        }
        if is_python {
            let margin = " ".repeat(start.len() - start.trim_start_matches(' ').len());
            for (change, line) in [
                ("and the cache emptied", "torch.cuda.empty_cache()"),
                ("and the program ended", "raise SystemExit"),
            ] {
                let lines = format!("{start}\n{margin}{line}");
                mutants.push(Mutant { change: format!("start: {change}"), lines });
            }
        }
        let mut seen = BTreeSet::from([solution]);
        mutants.retain(|mutant| seen.insert(mutant.lines.clone()));
        mutants
    }
}

/// Each line left out; in Python only one that begins no block.
fn without_lines(text: &str, add: &mut impl FnMut(String, String)) {
    let lines: Vec<&str> = text.lines().collect();
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        if line.trim_end().ends_with([':', '{']) || line.trim() == "}" {
            continue;
        }
        let left: Vec<&str> =
            lines.iter().enumerate().filter(|(other, _)| *other != index).map(|row| *row.1).collect();
        add(format!("without `{}`", line.trim()), left.join("\n"));
    }
}

/// Each whole number halved.
fn smaller(text: &str, add: &mut impl FnMut(String, String)) {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '.';
    let mut from = 0;
    while let Some(start) =
        text.get(from..).and_then(|rest| rest.find(|letter: char| letter.is_ascii_digit()))
    {
        let start = from + start;
        let (before, rest) = text.split_at(start);
        let length = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        let (digits, after) = rest.split_at(length);
        from = start + length;
        let is_number = !before.ends_with(is_word) && !after.starts_with(is_word);
        let Some(number) = digits.parse::<u64>().ok().filter(|number| is_number && *number > 1) else {
            continue;
        };
        let half = number / 2;
        add(format!("{half} in place of {number}"), format!("{before}{half}{after}"));
    }
}

/// The changes of a Python program.
fn of_program(text: &str, add: &mut impl FnMut(String, String)) {
    let on_cpu = text.replace("device=\"cuda\"", "device=\"cpu\"").replace(".cuda()", "");
    add("on the CPU".to_owned(), on_cpu);
    let mut empty = text.to_owned();
    for factory in FACTORIES {
        empty = empty.replace(&format!("{factory}("), "torch.empty(");
    }
    add("`torch.empty`".to_owned(), empty);
    let (mut expanded, mut other_type) = (text.to_owned(), text.to_owned());
    for factory in FACTORIES {
        expanded =
            with_calls(&expanded, factory, |sizes, options| format!("{factory}(1{options}).expand({sizes})"));
        if !text.contains("dtype=") {
            other_type = with_calls(&other_type, factory, |sizes, options| {
                format!("{factory}({sizes}, dtype=torch.float16{options})")
            });
        }
    }
    add("one number, expanded".to_owned(), expanded);
    for (from, to) in [("float16", "float32"), ("float16", "int8"), ("float32", "float16")] {
        let (from, to) = (format!("torch.{from}"), format!("torch.{to}"));
        add(format!("`{to}` in place of `{from}`"), text.replace(&from, &to));
    }
    add("`torch.float16`".to_owned(), other_type);
    let inner: Vec<String> = text.lines().map(|line| format!("    {line}")).collect();
    let margin = " ".repeat(text.len() - text.trim_start_matches(' ').len());
    if text.contains("backward") {
        add("without gradients".to_owned(), format!("{margin}with torch.no_grad():\n{}", inner.join("\n")));
    }
    add("never run".to_owned(), format!("{margin}if False:\n{}", inner.join("\n")));
    for (line, name) in assignments(text) {
        add(format!("and `{name}` deleted"), format!("{text}\n{margin}del {name}"));
        for (words, expression) in
            [("moved to the CPU", format!("{name}.cpu()")), ("cut to a part", format!("{name}[:1].clone()"))]
        {
            let after = |(index, text): (usize, &str)| {
                let margin = " ".repeat(text.len() - text.trim_start_matches(' ').len());
                let added = (index == line).then(|| format!("\n{margin}{name} = {expression}"));
                text.to_owned() + &added.unwrap_or_default()
            };
            let lines: Vec<String> = text.lines().enumerate().map(after).collect();
            add(format!("`{name}` of line {} {words}", line + 1), lines.join("\n"));
        }
    }
}

/// The lines that give a name a value, from 0, with the name.
fn assignments(text: &str) -> Vec<(usize, &str)> {
    let name_of = |line: &'_ str| -> Option<usize> {
        let (name, _) = line.split_once(" = ")?;
        let is_name = name.trim().chars().all(|letter| letter.is_alphanumeric() || letter == '_');
        is_name.then_some(name.len())
    };
    let lines = text.lines().enumerate();
    lines.filter_map(|(index, line)| Some((index, line.get(..name_of(line)?)?.trim()))).collect()
}

/// The text with each call of a function written anew from its sizes, and from its named arguments with the comma
/// before them.
fn with_calls(text: &str, function: &str, write: impl Fn(&str, &str) -> String) -> String {
    let call = format!("{function}(");
    let mut pieces = text.split(&*call);
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let Some((arguments, rest)) = piece.split_once(')') else {
            out.extend([call.as_str(), piece]);
            continue;
        };
        let (options, sizes): (Vec<&str>, Vec<&str>) =
            arguments.split(", ").partition(|argument| argument.contains('='));
        let options = [&[""], options.as_slice()].concat().join(", ");
        out.push_str(&write(&sizes.join(", "), &options));
        out.push_str(rest);
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::lesson::Lesson;

    #[test]
    fn a_program_is_changed_in_small_ways() {
        let text = "---\nid: own\ntitle: Own\nsummary: Own.\ncapacity: 1 GiB\n---\n## Half\nUse less.\n\
                    ```exercise\ngoal: allocated at most 8 B\n```\n```python start\nimport torch\n\
                    # edit from here\nx = torch.ones(4, 6, device=\"cuda\")\n# edit to here\n```\n\
                    ```python solution\nx = torch.ones(4, 6, dtype=torch.float16, device=\"cuda\")\n```\n";
        let lesson = Lesson::parse(text).unwrap();
        let exercise = lesson.cards[0].exercise.as_ref().unwrap();
        let mutants = exercise.mutants();
        let changes: Vec<String> =
            mutants.iter().map(|mutant| format!("{} | {}", mutant.change, mutant.lines)).collect();
        expect_test::expect![[r#"
            start: unchanged | x = torch.ones(4, 6, device="cuda")
            no lines | 
            start: 2 in place of 4 | x = torch.ones(2, 6, device="cuda")
            start: 3 in place of 6 | x = torch.ones(4, 3, device="cuda")
            start: on the CPU | x = torch.ones(4, 6, device="cpu")
            start: `torch.empty` | x = torch.empty(4, 6, device="cuda")
            start: one number, expanded | x = torch.ones(1, device="cuda").expand(4, 6)
            start: never run | if False:
                x = torch.ones(4, 6, device="cuda")
            start: and `x` deleted | x = torch.ones(4, 6, device="cuda")
            del x
            start: `x` of line 1 moved to the CPU | x = torch.ones(4, 6, device="cuda")
            x = x.cpu()
            start: `x` of line 1 cut to a part | x = torch.ones(4, 6, device="cuda")
            x = x[:1].clone()
            solution: 2 in place of 4 | x = torch.ones(2, 6, dtype=torch.float16, device="cuda")
            solution: 3 in place of 6 | x = torch.ones(4, 3, dtype=torch.float16, device="cuda")
            solution: on the CPU | x = torch.ones(4, 6, dtype=torch.float16, device="cpu")
            solution: `torch.empty` | x = torch.empty(4, 6, dtype=torch.float16, device="cuda")
            solution: one number, expanded | x = torch.ones(1, dtype=torch.float16, device="cuda").expand(4, 6)
            solution: `torch.float32` in place of `torch.float16` | x = torch.ones(4, 6, dtype=torch.float32, device="cuda")
            solution: `torch.int8` in place of `torch.float16` | x = torch.ones(4, 6, dtype=torch.int8, device="cuda")
            solution: never run | if False:
                x = torch.ones(4, 6, dtype=torch.float16, device="cuda")
            solution: and `x` deleted | x = torch.ones(4, 6, dtype=torch.float16, device="cuda")
            del x
            solution: `x` of line 1 moved to the CPU | x = torch.ones(4, 6, dtype=torch.float16, device="cuda")
            x = x.cpu()
            solution: `x` of line 1 cut to a part | x = torch.ones(4, 6, dtype=torch.float16, device="cuda")
            x = x[:1].clone()
            start: and the cache emptied | x = torch.ones(4, 6, device="cuda")
            torch.cuda.empty_cache()
            start: and the program ended | x = torch.ones(4, 6, device="cuda")
            raise SystemExit
        "#]].assert_eq(&(changes.join("\n") + "\n"));
    }
}
