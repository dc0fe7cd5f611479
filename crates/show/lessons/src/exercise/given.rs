//! The names that the task of a program gives: the reader's lines use them, and do not give them another
//! meaning. A helper that makes smaller tensors would meet every goal.

use std::collections::BTreeSet;

use super::{Exercise, ExerciseLanguage};

/// A name that a statement gives a meaning.
struct Bound<'a> {
    name: &'a str,
    /// The line, from 0.
    line: usize,
    /// The right side of an assignment; `None` for a function, a class, a module, and a name of a loop.
    value: Option<&'a str>,
    is_definition: bool,
}

impl Exercise {
    /// Which line of the answer changes a name of the task, as a clause; `None` if none does. Functions,
    /// classes and modules always count. A value counts where the lesson's own lines keep it, unless the value
    /// begins empty (`results = []`) or the new one is made from all of it (`model = model.half()`).
    pub(super) fn changed_name(&self, text: &str) -> Option<String> {
        if self.language != ExerciseLanguage::Python {
            return None;
        }
        let task: Vec<&str> = self.start.lines().collect();
        let region = self.region();
        let given = bound_names(task.get(..region.start)?);
        let solution: Vec<&str> = self.solution().unwrap_or_default().lines().collect();
        let lessons_own = [task.get(region.clone())?, &solution].map(bound_names);
        let free: BTreeSet<&str> = lessons_own.iter().flatten().map(|bound| bound.name).collect();
        // In a function or a loop, a name may be another one than that of the task.
        let has_values = self.solution.is_some()
            && task.get(region.start).is_some_and(|line| !line.starts_with(char::is_whitespace));
        let is_fixed = |name: &str, now: &Bound<'_>| {
            given.iter().filter(|known| known.name == name && !free.contains(name)).any(|known| {
                known.is_definition
                    || (has_values
                        && known.value.is_some_and(|value| !is_empty(value))
                        && !now.value.is_some_and(|value| is_made_from(value, name)))
            })
        };
        let own = self.own_text(text);
        let changed = bound_names(&own).into_iter().find(|bound| is_fixed(bound.name, bound))?;
        let (line, name) = (region.start + changed.line + 1, changed.name);
        Some(format!("line {line} changes `{name}`, which the task gives: use another name"))
    }
}

/// Whether the right side of an assignment has nothing in it yet.
fn is_empty(value: &str) -> bool {
    value.chars().all(|letter| "[](){}, .0".contains(letter)) || value == "None"
}

/// Whether a value is made from all of a name's, and not from a part of it.
fn is_made_from(value: &str, name: &str) -> bool {
    let mut is_used = false;
    for (at, _) in value.match_indices(name) {
        let before = value.get(..at).and_then(|before| before.chars().next_back());
        let after = value.get(at + name.len()..).and_then(|after| after.chars().next());
        if before.is_some_and(is_of_name) || before == Some('.') || after.is_some_and(is_of_name) {
            continue;
        }
        if after == Some('[') {
            return false;
        }
        is_used = true;
    }
    is_used
}

fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter| !is_of_name(letter)).filter(|name| !name.is_empty())
}

fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// The names that these lines of Python bind, without those of the bodies of functions and classes. Lines
/// that go on with a statement bind none here.
fn bound_names<'a>(lines: &[&'a str]) -> Vec<Bound<'a>> {
    let (mut bound, mut depth, mut body) = (Vec::new(), 0_usize, None);
    for (line, text) in lines.iter().enumerate() {
        let code = text.split('#').next().unwrap_or_default().trim_end();
        let indent = code.len() - code.trim_start().len();
        let is_begun = depth == 0 && !code.is_empty();
        depth += code.matches(['(', '[', '{']).count();
        depth = depth.saturating_sub(code.matches([')', ']', '}']).count());
        if !is_begun || body.is_some_and(|body| indent > body) {
            continue;
        }
        body = None;
        let words = code.trim_start().trim_start_matches("async ").trim_start();
        if let Some(rest) = words.strip_prefix("def ").or_else(|| words.strip_prefix("class ")) {
            body = Some(indent);
            let name = rest.trim_start().split(|letter| !is_of_name(letter)).next().unwrap_or_default();
            bound.push(Bound { name, line, value: None, is_definition: true });
            continue;
        }
        for statement in words.split(';') {
            bound.extend(bound_by(statement.trim(), line));
        }
    }
    bound
}

/// The names that a statement on one line binds.
fn bound_by(statement: &str, line: usize) -> Vec<Bound<'_>> {
    let imported = statement
        .strip_prefix("import ")
        .or_else(|| Some(statement.strip_prefix("from ")?.split_once(" import ")?.1));
    if let Some(imported) = imported {
        let name_of = |part| names(str::rsplit(part, " as ").next()?).next();
        let module = |name| Bound { name, line, value: None, is_definition: true };
        return imported.split(',').filter_map(name_of).map(module).collect();
    }
    let of_block = |name| Bound { name, line, value: None, is_definition: false };
    if let Some((targets, _)) = statement.strip_prefix("for ").and_then(|rest| rest.split_once(" in ")) {
        return names(targets).map(of_block).collect();
    }
    if let Some(rest) = statement.strip_prefix("with ") {
        return rest.split(" as ").skip(1).filter_map(|after| names(after).next()).map(of_block).collect();
    }
    // The statement of `if x: y = 1`.
    let is_block = ["if ", "elif ", "else:", "while ", "try:"].iter().any(|word| statement.starts_with(word));
    if let Some((_, inner)) = statement.split_once(':').filter(|_| is_block) {
        return bound_by(inner.trim(), line);
    }
    let Some(equals) = assignment(statement) else { return Vec::new() };
    let (targets, value) = (statement.get(..equals).unwrap_or_default(), statement.get(equals + 1..));
    let value = value.unwrap_or_default().trim();
    // The last value of `a = b = 1`.
    let mut all = bound_by(value, line);
    let value = all.first().and_then(|next| next.value).unwrap_or(value);
    let targets = targets.split(':').next().unwrap_or_default().split(',');
    let targets = targets.map(|target| target.trim_matches(|letter: char| " ()[]*".contains(letter)));
    let is_name = |name: &&str| !name.is_empty() && name.chars().all(is_of_name);
    all.extend(targets.filter(is_name).map(|name| Bound {
        name,
        line,
        value: Some(value),
        is_definition: false,
    }));
    all
}

/// Where the `=` of an assignment is, outside of all brackets; that of `+=` changes a value in its place and
/// counts as none.
fn assignment(statement: &str) -> Option<usize> {
    let (mut depth, mut before) = (0_usize, ' ');
    for (at, letter) in statement.char_indices() {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            '\'' | '"' => return None,
            '=' if depth == 0 => {
                let is_compared = statement.get(at + 1..).is_some_and(|rest| rest.starts_with('='));
                return (!is_compared && !"=!<>+-*/%&|^@:".contains(before)).then_some(at);
            }
            _ => {}
        }
        before = letter;
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::exercise::Exercise;
    use crate::lesson::Lesson;

    fn exercise(solution: &str) -> Exercise {
        let text = format!(
            "---\nid: own\ntitle: Own\nsummary: Own.\ncapacity: 1 GiB\n---\n## Half\nUse less.\n\
             ```exercise\ngoal: allocated at most 8 B\n```\n```python start\nimport torch\n\
             from torch import nn\ndef tensor(mib):\n    size = mib\n    return torch.empty(size)\n\
             kept, layers = [], []\nmodel = nn.Linear(4, 4).cuda()\nbatch = tensor(4)\n\
             # edit from here\nx = batch\n# edit to here\nassert x.is_cuda\n```\n\
             ```python solution\n{solution}\n```\n"
        );
        Lesson::parse(&text).unwrap().cards[0].exercise.clone().unwrap()
    }

    #[test]
    fn what_the_task_gives_keeps_its_meaning() {
        let own = exercise("x = batch[:1]");
        for (lines, name) in [
            ("x = 1\ndef tensor(mib):\n    return 3", "tensor"),
            ("tensor = lambda mib: torch.empty(1)", "tensor"),
            ("tensor: object = print", "tensor"),
            ("x = tensor = print", "tensor"),
            ("if True: tensor = print", "tensor"),
            ("for tensor in [1]: pass", "tensor"),
            ("import numpy as torch", "torch"),
            ("from mine import nn, other", "nn"),
            ("class nn:\n    Linear = 1", "nn"),
            ("x, batch = batch[:1], 2", "batch"),
            ("batch = batch[:1]", "batch"),
            ("with a() as model: pass", "model"),
        ] {
            let why = own.changed_name(&own.with_region(lines));
            assert!(
                why.as_ref().is_some_and(|why| why.contains(&format!("changes `{name}`"))),
                "{lines}: {why:?}"
            );
        }
        let why = own.changed_name(&own.with_region("y = 1\ntensor = 2")).unwrap();
        assert_eq!(why, "line 11 changes `tensor`, which the task gives: use another name");
    }

    #[test]
    fn the_lessons_own_lines_change_nothing_and_a_helper_of_smaller_tensors_is_found() {
        let mut helpers = 0;
        for file in crate::lessons() {
            let lesson = Lesson::parse(file.text).unwrap();
            let exercise = lesson.cards.iter().find_map(|card| card.exercise.as_ref()).unwrap();
            let changed = |lines: &str| exercise.changed_name(&exercise.with_region(lines));
            let solution = exercise.solution().unwrap();
            assert_eq!(
                (changed(solution), exercise.changed_name(exercise.start())),
                (None, None),
                "{}",
                file.id
            );
            for name in ["tensor", "gather", "evaluate", "measure"] {
                if exercise.start().contains(&format!("def {name}(")) {
                    helpers += 1;
                    let lines = format!("def {name}(x):\n    return x\n{solution}");
                    assert!(changed(&lines).is_some_and(|why| why.contains(name)), "{}", file.id);
                }
            }
        }
        assert!(helpers >= 2, "{helpers}");
    }

    #[test]
    fn other_lines_may_use_what_the_task_gives() {
        let own = exercise("x = batch[:1]");
        for lines in [
            "x = tensor(4)",
            "kept = [tensor(1)]\nlayers += kept",
            "def other(mib):\n    batch = tensor(mib)\n    return batch",
            "x = dict(batch=1, tensor=2)",
            "x = f(\n    batch=1,\n    tensor=2,\n)",
            "assert batch == model and batch != 1 and batch <= 2",
            "model = model.half()",
            "batch = nn.Sequential(batch)",
            "# tensor = 3",
            "print(\"tensor = 3\")",
            "batch[0] = 1\nbatch.data = 2",
        ] {
            assert_eq!(own.changed_name(&own.with_region(lines)), None, "{lines}");
        }
        let changed = exercise("batch = batch[:1]\nx = batch");
        assert_eq!(changed.changed_name(&changed.with_region("batch = 3")), None);
    }
}
