//! The failure of the program, above its output: the error, and the known cause.

use blockyard_lessons::{exception, failing_line, with_code};
use leptos::prelude::*;

use crate::messages::sentence;
use crate::navigation::{CardPlace, Place};
use crate::program::{ProgramEnd, ProgramResult};
use crate::session::Session;
use crate::view::kit::{button, click};
use crate::view::program::fit;
use crate::view::program::output::last_run;
use crate::view::prose;

/// The lesson whose exercise, on its last card, is a list that keeps tensors.
const LESSON: &str = "what-to-change";

pub(super) fn ended(session: Session) -> AnyView {
    let content = move || {
        let result = last_run(session)?;
        let error = result.details.traceback.as_deref()?;
        let line = failing_line(error);
        let place = line.map(|line| format!("Line {line}: ")).unwrap_or_default();
        let short = exception(error)?;
        let begin = short.trim_end_matches(" …");
        // The tooltip and the output below have the whole line.
        let whole = error.lines().find(|line| line.starts_with(begin)).unwrap_or(begin).to_owned();
        let error = format!("{place}{}", whole_sentences(&short));
        let cause = result.details.cause.as_ref().map(|cause| {
            let place = if cause.line == 0 { String::new() } else { format!("Line {}: ", cause.line) };
            let go = click(move || session.navigation().go_to(Place::Lesson { id: LESSON.to_owned(), card: CardPlace::Last }));
            let lesson = button("link", "cause-lesson", "An exercise about that", "", go);
            view! { <p data-testid="cause">{prose::inlines(session, &with_code(&format!("{place}{}", sentence(&cause.text))))}" "{lesson}</p> }
        });
        // The bytes of holders do not explain an error that is not about memory.
        let is_memory = matches!(result.end(), ProgramEnd::OutOfMemory(_));
        let estimate = line.filter(|_| is_memory).and_then(|line| estimate(&result, line));
        let estimate =
            estimate.map(|words| view! { <p class="estimated"><strong>"Estimated. "</strong>{words}</p> });
        Some(view! {
            <div class="ended" data-testid="ended">
                <p><b title=whole>{error}</b></p>
                {estimate}
                {cause}
                {fit::command(&result)}
            </div>
        })
    };
    view! { {content} }.into_any()
}

/// The message without its last sentence if that was cut off and another sentence is before it.
fn whole_sentences(message: &str) -> &str {
    let cut = message.strip_suffix(" …").and_then(|begin| begin.rsplit_once(". "));
    cut.map_or(message, |(sentences, _)| sentences)
}

/// A sentence about the unverified estimate in the line that failed; `None` if the line has none.
fn estimate(result: &ProgramResult, line: u32) -> Option<String> {
    let found = result.details.estimates.iter().rfind(|estimate| estimate.line == line)?;
    Some(format!("{}, in this line: {}", found.operator, sentence(&found.reason)))
}

#[cfg(test)]
mod tests {
    use super::whole_sentences;
    use wasm_bindgen_test::wasm_bindgen_test as test;

    #[test]
    fn a_message_ends_with_a_sentence() {
        let oom =
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total …";
        assert_eq!(
            whole_sentences(oom),
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB"
        );
        assert_eq!(whole_sentences("ValueError: one long sentence …"), "ValueError: one long sentence …");
        assert_eq!(whole_sentences("ValueError: no. yes"), "ValueError: no. yes");
    }
}
