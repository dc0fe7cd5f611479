//! Which groups of allocations hold the memory of a moment: a table that can be sorted, a flame graph, a
//! search, and the chosen allocations.

use blockyard_figure::{
    AllocationFilter, AllocationQuery, ByteUnit, ColorBy, GroupBy, Holder, Role, bytes_of, group_key,
    holder_texts, holders as find_holders, percent, rows_in,
};
use blockyard_record::{Bytes, exact_size, grouped};
use leptos::ev;
use leptos::prelude::*;

use crate::browser::Delay;
use crate::effect::effect;
use crate::element_ids::HOLDERS_FILTER;
use crate::figures::{Columns, HolderMoment};
use crate::lab::row_of_line;
use crate::numbers::grouped_count;
use crate::ptr_eq::PtrEq;
use crate::session::Session;
use crate::view::figure::flame;
use crate::view::kit::{Options, button, choice, choices, click, flag, on, select, text};

/// The most rows of the table; one more row says how many groups are left out.
const MAX_ROWS: usize = 200;
/// Holders are found again after nothing has changed for this time.
const REST_MILLIS: i32 = 120;
/// The column by which the table is sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Bytes,
    Count,
    Oldest,
    Name,
}

/// The holders of one moment or range, as the search, the grouping and the moment were when they were found.
#[derive(Debug)]
pub(crate) struct HolderList {
    pub(crate) columns: PtrEq<Columns>,
    scope: AllocationFilter,
    by: GroupBy,
    /// The allocations that the search finds, as rows of the columns.
    pub(crate) rows: Vec<usize>,
    /// The groups of these allocations, by descending bytes.
    holders: Vec<Holder>,
    /// The bytes of these allocations.
    pub(crate) bytes: Bytes,
    /// The count and the bytes of all allocations, without the search.
    whole: (usize, Bytes),
}

pub(crate) fn holders(session: Session) -> AnyView {
    let list = current_list(session);
    let order = RwSignal::new(Order::Bytes);
    let summary = text(move || {
        let peak = session.run.with(|run| run.series.peak_steps(&run.recording).0);
        list.with(|list| list.as_ref().map_or_else(waiting, |it| summary(it, peak)))
    });
    let is_flame = flag(move || session.figures().is_flame.get());
    view! {
        <div class="pad holders" data-testid="holders">
            {controls(session)}
            <p class="quiet" data-testid="holders-summary">{summary}</p>
            {move || match (list.get(), is_flame.get()) {
                (None, _) => ().into_any(),
                (Some(list), true) => flame::flame(session, &list),
                (Some(list), false) => table(session, &list, order),
            }}
        </div>
    }
    .into_any()
}

fn waiting() -> String {
    "Finding all allocations of the recording …".to_owned()
}

/// The current holders, found again after a change of the moment, the grouping or the search.
fn current_list(session: Session) -> RwSignal<Option<PtrEq<HolderList>>> {
    let found = RwSignal::new(None);
    let delay = Delay::new();
    let is_first = StoredValue::new(true);
    effect(move || {
        let (columns, scope, by) = (
            session.figures().columns(),
            session.figures().allocation_filter(),
            session.figures().group_by(),
        );
        let search = session.figures().filter.get();
        let wait = if is_first.get_value() { 0 } else { REST_MILLIS };
        // The first holders of a recording are found at once.
        is_first.set_value(columns.is_none());
        delay.start(wait, move || {
            let list = columns.map(|columns| PtrEq::new(find(columns, scope, by, &search)));
            // The panel may have been closed in the meantime.
            let _ = found.try_set(list);
        });
    });
    found
}

fn find(columns: PtrEq<Columns>, scope: AllocationFilter, by: GroupBy, search: &str) -> HolderList {
    let (allocations, recording) = (&columns.allocations, &columns.recording);
    let all = rows_in(allocations, scope);
    let whole = (all.len(), bytes_of(allocations, &all));
    let search = AllocationQuery::parse(search);
    let rows = if search.is_empty() { all } else { search.filter(allocations, recording, &all) };
    let holders = find_holders(allocations, recording, &rows, by);
    let bytes = bytes_of(allocations, &rows);
    HolderList { columns, scope, by, rows, holders, bytes, whole }
}

/// `peak` is the moment at which most is allocated.
fn summary(list: &HolderList, peak: usize) -> String {
    let (count, bytes) = list.whole;
    let when = match list.scope {
        AllocationFilter::At(moment) if moment == peak => {
            format!("at the peak, after request {}", grouped_count(moment))
        }
        AllocationFilter::At(moment) => format!("after request {}", grouped_count(moment)),
        AllocationFilter::Throughout(one, other) => format!(
            "all the time from request {} to request {}",
            grouped_count(one.min(other)),
            grouped_count(one.max(other))
        ),
        AllocationFilter::NewBetween(one, other) => format!(
            "allocated after request {} and there after request {}",
            grouped_count(one.min(other)),
            grouped_count(one.max(other))
        ),
        AllocationFilter::MadeBetween(one, other) => format!(
            "allocated after request {} and up to request {}",
            grouped_count(one.min(other)),
            grouped_count(one.max(other))
        ),
    };
    let found = if list.rows.len() == count {
        String::new()
    } else {
        format!("{} in {} of ", list.bytes, grouped_count(list.rows.len()))
    };
    format!("{found}{} in {} allocations {when}", exact_size(bytes), grouped_count(count))
}

fn controls(session: Session) -> AnyView {
    let figures = session.figures();
    let moment: Signal<Options> = Signal::derive(move || {
        let has_range = figures.steps_range().is_some();
        let shown = HolderMoment::ALL.into_iter().filter(|(moment, ..)| has_range || !moment.is_of_range());
        shown.map(|(_, name, title)| (name.to_owned(), title.to_owned())).collect()
    });
    let pick_moment = move |name: String| {
        if let Some((moment, ..)) = HolderMoment::ALL.into_iter().find(|(_, known, _)| *known == name) {
            figures.holder_moment.set(moment);
        }
    };
    let groups: Signal<Options> = Signal::derive(move || {
        let has_stacks = session.figures().columns().is_some_and(|columns| columns.has_stacks);
        let shown = GroupBy::ALL.into_iter().filter(|by| has_stacks || !by.needs_stacks());
        shown.map(|by| (by.name().to_owned(), format!("by {}", by.name()))).collect()
    });
    let pick_group = move |name: String| {
        if let Some(by) = GroupBy::ALL.into_iter().find(|by| by.name() == name) {
            figures.chosen_groups.set(Some(by));
        }
    };
    let search = on(move |event: ev::Event| figures.filter.set(event_target_value(&event)));
    view! {
        <div class="cluster">
            {select("wanted", "Which moment", moment, text(move || figures.holder_moment.get().name().to_owned()), pick_moment)}
            {select("group-by", "Grouped by", groups, text(move || session.figures().group_by().name().to_owned()), pick_group)}
            {choices("Form", Signal::stored(false), vec![
                choice("as-table", "Table", flag(move || !figures.is_flame.get()), click(move || figures.is_flame.set(false))),
                choice("as-flame", "Flame graph", flag(move || figures.is_flame.get()), click(move || figures.is_flame.set(true))),
            ])}
        </div>
        <input
            type="search" class="field" id=HOLDERS_FILTER data-testid="holders-search"
            placeholder="Search: function or file:line, 0x address, >10MiB, stream:1"
            aria-label="Search allocations by stack, address, size or stream"
            prop:value=text(move || figures.filter.get()) on:input=search
        />
    }
    .into_any()
}

fn table(session: Session, list: &PtrEq<HolderList>, order: RwSignal<Order>) -> AnyView {
    let whole = list.clone();
    let heading = move |of: Order, id: &'static str, label: &'static str| {
        let sort = text(move || if order.get() == of { "descending" } else { "none" }.to_owned());
        view! {
            <th scope="col" aria-sort=sort>
                {button("link", id, label, "Sort by this", click(move || order.set(of)))}
            </th>
        }
        .into_any()
    };
    let rows = move || {
        let list = whole.clone();
        let recording = &list.columns.recording;
        let mut holders: Vec<(String, Holder)> =
            holder_texts(recording, &list.holders).into_iter().zip(list.holders.iter().copied()).collect();
        match order.get() {
            Order::Bytes => {}
            Order::Count => holders.sort_by_key(|(_, holder)| std::cmp::Reverse(holder.count)),
            Order::Oldest => holders.sort_by_key(|(_, holder)| holder.oldest),
            Order::Name => holders.sort_by(|(one, _), (other, _)| one.cmp(other)),
        }
        let hidden = holders.get(MAX_ROWS..).unwrap_or_default();
        let hidden_bytes: Bytes = hidden.iter().map(|(_, holder)| holder.bytes).sum();
        let rest = (!hidden.is_empty()).then(|| {
            let words = format!("{} more groups hold {hidden_bytes}", grouped_count(hidden.len()));
            view! { <tr><td colspan="4" class="quiet">{words}</td></tr> }.into_any()
        });
        holders.truncate(MAX_ROWS);
        let most = list.holders.iter().map(|holder| holder.bytes).max();
        let unit = ByteUnit::of(most.unwrap_or_default());
        // A group has the color of its allocations where colors say the property of the group.
        let color_by = session.figures().color_by();
        let has_colors =
            list.by.name() == color_by.name() || (list.by, color_by) == (GroupBy::Stack, ColorBy::Line);
        let colored = session.figures().color_groups().filter(|_| has_colors);
        let rows = holders.into_iter().map(|(text, holder)| {
            let role = colored.as_ref().map(|groups| groups.role(holder.row));
            row(session, &list, text, holder, (unit, role))
        });
        let rows = rows.collect::<Vec<_>>();
        view! { {rows}{rest} }.into_any()
    };
    view! {
        <table class="holder-table">
            <caption class="visually-hidden">"Who holds the bytes"</caption>
            <thead>
                <tr>
                    {heading(Order::Name, "sort-name", "Held by")}
                    {heading(Order::Bytes, "sort-bytes", "Bytes")}
                    {heading(Order::Count, "sort-count", "Count")}
                    {heading(Order::Oldest, "sort-oldest", "Oldest")}
                </tr>
            </thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

/// The color of a line in the figures, before its name; empty while colors say something else.
pub(crate) fn line_swatch(session: Session, line: String) -> AnyView {
    let role = Memo::new(move |_| {
        let figures = session.figures();
        let columns = figures.columns().filter(|_| figures.color_by() == ColorBy::Line)?;
        let row = session.run.with(|run| row_of_line(run, &columns.allocations, &line))?;
        Some(figures.color_groups()?.role(row))
    });
    view! { {move || role.get().map(swatch)} }.into_any()
}

fn swatch(role: Role) -> AnyView {
    let style = format!("background:var({})", role.css_variable());
    view! { <span class="swatch of-line" style=style aria-hidden="true"></span> }.into_any()
}

fn row(
    session: Session,
    list: &PtrEq<HolderList>,
    name: String,
    holder: Holder,
    (unit, role): (ByteUnit, Option<Role>),
) -> AnyView {
    let swatch = role.map(swatch);
    let share = width_percent(holder.bytes, list.whole.1);
    let bytes = exact_size(holder.bytes);
    let oldest = if holder.oldest == 0 {
        "before".to_owned()
    } else {
        format!("request {}", grouped_count(holder.oldest))
    };
    let list = list.clone();
    let title = name.clone();
    let is_picked = {
        let title = title.clone();
        text(move || {
            let picked = session.figures().picked.get();
            picked.is_some_and(|picked| picked.title == title).to_string()
        })
    };
    let choose = click(move || {
        let (allocations, recording) = (&list.columns.allocations, &list.columns.recording);
        let is_in = |row: &usize| group_key(allocations, recording, *row, list.by) == Some(holder.key);
        session.figures().pick(title.clone(), list.rows.iter().copied().filter(is_in).collect());
        session.figures().show_choice();
    });
    view! {
        <tr>
            <th scope="row">
                <button type="button" class="holder" aria-pressed=is_picked on:click=choose>{swatch}{name}</button>
                <span class="held" aria-hidden="true"><span style=format!("width:{share}%")></span></span>
            </th>
            <td title=bytes>{unit_text(unit, holder.bytes)}</td>
            <td>{grouped_count(holder.count)}</td>
            <td>{oldest}</td>
        </tr>
    }
    .into_any()
}

/// A table of bytes with their holders, in the order of `rows`, and the share of each row in the sum.
pub(crate) fn holding_table(id: &'static str, rows: Vec<(Bytes, AnyView)>) -> AnyView {
    let whole: Bytes = rows.iter().map(|(bytes, _)| *bytes).sum();
    let unit = ByteUnit::of(rows.iter().map(|(bytes, _)| *bytes).max().unwrap_or_default());
    let row = |(bytes, what): (Bytes, AnyView)| {
        view! {
            <tr>
                <td class="number" title=format!("{} bytes", grouped(bytes.get()))>{unit_text(unit, bytes)}</td>
                <td class="number">{percent(bytes, whole)}</td>
                <td>{what}</td>
            </tr>
        }
        .into_any()
    };
    let rows = rows.into_iter().map(row).collect::<Vec<_>>();
    view! {
        <table class="answer holding" data-testid=id>
            <thead class="visually-hidden">
                <tr><th scope="col">"Bytes"</th><th scope="col">"Share"</th><th scope="col">"Line"</th></tr>
            </thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

/// Bytes in the unit of their column.
fn unit_text(unit: ByteUnit, bytes: Bytes) -> String {
    format!("{} {}", unit.number(bytes), unit.name())
}

/// The width of a bar for a part of the whole, in percent.
fn width_percent(part: Bytes, whole: Bytes) -> String {
    let whole = u128::from(whole.get().max(1));
    let tenths = (u128::from(part.get()) * 1000 + whole / 2) / whole;
    format!("{}.{}", tenths / 10, tenths % 10)
}
