//! The statistics of the device as PyTorch's `memory_stats()` and `memory_summary()` show them.

use blockyard_pytorch::memory_summary;
use blockyard_record::{Bytes, Stat, Stats};
use leptos::ev;
use leptos::prelude::*;

use crate::browser;
use crate::numbers::grouped_signed;
use crate::session::Session;
use crate::view::kit::{button, check, choice, choices, click, flag, on, text, turn_over};
use crate::view::workbench::statistic::{COUNTERS, CountedPools, STATISTICS, Statistic};

/// The statistics, and how the reader wants them shown.
#[derive(Clone, Copy)]
struct ShownStats {
    stats: Memo<Stats>,
    pools: RwSignal<CountedPools>,
    is_exact: RwSignal<bool>,
}

pub(crate) fn memory_stats(session: Session) -> AnyView {
    let shown = ShownStats {
        stats: Memo::new(move |_| session.with_state(|_, state| state.reported_stats()).unwrap_or_default()),
        pools: RwSignal::new(CountedPools::All),
        is_exact: RwSignal::new(false),
    };
    let pools = CountedPools::ALL.map(|of| {
        let is_chosen = flag(move || shown.pools.get() == of);
        choice(of.test_id(), of.title(), is_chosen, click(move || shown.pools.set(of)))
    });
    let bytes =
        STATISTICS.iter().filter(|statistic| statistic.is_bytes()).map(|statistic| row(statistic, shown));
    let counts =
        STATISTICS.iter().filter(|statistic| !statistic.is_bytes()).map(|statistic| row(statistic, shown));
    let counters = COUNTERS.iter().map(|counter| {
        let value = text(move || match shown.stats.with(counter.get) {
            value if value < 0 && !shown.is_exact.get() => "no limit".to_owned(),
            value => grouped_signed(value),
        });
        explained(counter.title, counter.key, counter.meaning, vec![value])
    });
    view! {
        <div class="pad numbers" data-testid="numbers">
            <div class="cluster">
                {choices("Which blocks are counted", Signal::stored(false), pools.into())}
                {check(
                    "exact-bytes",
                    "In bytes",
                    "Bytes as plain numbers, as memory_stats() has them",
                    flag(move || shown.is_exact.get()),
                    move |is_exact| shown.is_exact.set(is_exact),
                )}
            </div>
            <div class="scroll-x" tabindex="0" role="group" aria-label="Statistics">
                {table("Bytes, from memory_stats(); choose a term to have it explained", bytes.collect())}
                {table("Counts", counts.collect())}
                <table>
                    <caption>"Since the beginning"</caption>
                    {counters.collect::<Vec<_>>()}
                </table>
            </div>
            {summary(session, shown.stats)}
        </div>
    }
    .into_any()
}

fn table(caption: &'static str, rows: Vec<AnyView>) -> AnyView {
    view! {
        <table>
            <caption>{caption}</caption>
            <thead>
                <tr>
                    <td></td>
                    <th scope="col">"Current"</th>
                    <th scope="col">"Peak so far"</th>
                    <th scope="col">"Allocated"</th>
                    <th scope="col">"Freed"</th>
                </tr>
            </thead>
            {rows}
        </table>
    }
    .into_any()
}

/// A row of a table. Its title is a button that shows the meaning of the statistic.
fn explained(
    title: &'static str,
    key: &'static str,
    meaning: &'static str,
    values: Vec<Signal<String>>,
) -> AnyView {
    let is_open = RwSignal::new(false);
    let columns = (values.len() + 1).to_string();
    let cells = values.into_iter().map(|value| view! { <td>{value}</td> }.into_any()).collect::<Vec<_>>();
    view! {
        <tbody>
            <tr>
                <th scope="row">
                    <button
                        type="button"
                        class="term"
                        title=format!("{key}: {meaning}")
                        aria-expanded=text(move || is_open.get().to_string())
                        on:click=turn_over(is_open)
                    >
                        {title}
                    </button>
                </th>
                {cells}
            </tr>
            <tr class="explained" hidden=flag(move || !is_open.get())>
                <td colspan=columns><code>{key}</code>": " {meaning}</td>
            </tr>
        </tbody>
    }
    .into_any()
}

fn row(statistic: &'static Statistic, shown: ShownStats) -> AnyView {
    let parts: [fn(&Stat) -> i64; 4] =
        [|stat| stat.current, |stat| stat.peak, |stat| stat.allocated, |stat| stat.freed];
    let values = parts.map(|part| {
        text(move || {
            let value = shown.stats.with(|stats| part(&shown.pools.get().of((statistic.get)(stats))));
            match u64::try_from(value) {
                Ok(bytes) if statistic.is_bytes() && !shown.is_exact.get() => Bytes::new(bytes).to_string(),
                _ => grouped_signed(value),
            }
        })
    });
    explained(statistic.title, statistic.key, statistic.meaning, values.to_vec())
}

fn summary(session: Session, stats: Memo<Stats>) -> AnyView {
    let is_open = RwSignal::new(false);
    let words = text(move || stats.with(|stats| memory_summary(stats, 0, false)));
    let content = move || {
        is_open.get().then(|| {
            view! { <pre class="summary" tabindex="0" data-testid="memory-summary">{words}</pre> }.into_any()
        })
    };
    let toggle = on(move |event: ev::Event| is_open.set(browser::is_details_open(&event)));
    let copy = click(move || {
        browser::copy(&words.get_untracked());
        session.show_note("memory_summary is on the clipboard.");
    });
    view! {
        <details class="summary-box" on:toggle=toggle>
            <summary data-testid="summary-toggle">"torch.cuda.memory_summary()"</summary>
            <p class="cluster">{button("", "copy-summary", "Copy", "Copy the text", copy)}</p>
            {content}
        </details>
    }
    .into_any()
}
