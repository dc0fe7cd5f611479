//! A flame graph of the call stacks whose allocations hold the bytes of a moment.

use std::collections::{BTreeMap, BTreeSet};

use blockyard_figure::{ColorBy, FlameGraph, Groups, LegendEntry, Role, TargetId, flame_scene, percent};
use blockyard_record::{StackId, Stacks};
use leptos::ev;
use leptos::html;
use leptos::prelude::*;

use crate::effect::effect;
use crate::numbers::grouped_count;
use crate::ptr_eq::PtrEq;
use crate::session::Session;
use crate::surface::{self, DrawnScene};
use crate::view::allocations::swatch;
use crate::view::holders::HolderList;
use crate::view::kit::{on, text};
use crate::view::tip::Tip;

/// The parts of a flame graph that its handlers share.
#[derive(Clone)]
struct Flame {
    session: Session,
    list: PtrEq<HolderList>,
    graph: PtrEq<FlameGraph>,
    /// The colors of stacks, which are those of the allocations over time, with the entries of their legend.
    colors: PtrEq<(BTreeMap<StackId, Role>, Vec<LegendEntry>)>,
    focus: RwSignal<usize>,
    drawn: DrawnScene,
}

pub(crate) fn flame(session: Session, list: &PtrEq<HolderList>) -> AnyView {
    let area = NodeRef::<html::Div>::new();
    let canvas = NodeRef::<html::Canvas>::new();
    let size = surface::size_of(area);
    let tip = Tip::new();
    let (allocations, recording) = (&list.columns.allocations, &list.columns.recording);
    let flame = Flame {
        session,
        list: list.clone(),
        graph: PtrEq::new(FlameGraph::new(allocations, recording, &list.rows)),
        colors: PtrEq::new(colors(list)),
        focus: RwSignal::new(0),
        drawn: DrawnScene::new(),
    };
    let shown = flame.clone();
    effect(move || {
        let (Some(canvas), size) = (canvas.get(), size.get()) else { return };
        if size.width_px >= 1.0 {
            let role_of = |stack| shown.colors.0.get(&stack).copied();
            let scene = flame_scene(&shown.graph, shown.stacks(), shown.focus.get(), size.width_px, &role_of);
            surface::show(session, &canvas, &scene);
            shown.drawn.keep(scene);
        }
    });
    let (hovered, clicked, keyed, spoken) = (flame.clone(), flame.clone(), flame.clone(), flame);
    let moved = on(move |event: ev::PointerEvent| {
        tip.show(hovered.node_at(&event).and_then(|place| hovered.frame_text(place)), &event);
    });
    let click = on(move |event: ev::MouseEvent| {
        if let Some(place) = clicked.node_at(&event) {
            clicked.choose(place);
        }
    });
    let key = on(move |event: ev::KeyboardEvent| {
        if let Some(to) = keyed.neighbor(&event.key()) {
            event.prevent_default();
            event.stop_propagation();
            keyed.choose(to);
        }
    });
    let legend = flame_legend(&spoken.colors.1);
    let label = text(move || spoken.label());
    view! {
        <div class="flame" node_ref=area tabindex="0" role="application" aria-label=label data-testid="flame"
            on:pointermove=moved on:pointerleave=on(move |_: ev::PointerEvent| tip.hide()) on:click=click on:keydown=key
            // Without this, the tooltip would stay at the old place of its node.
            on:wheel=on(move |_: ev::WheelEvent| tip.hide())
        >
            <canvas node_ref=canvas aria-hidden="true"></canvas>
            {tip.view()}
        </div>
        {legend}
    }
    .into_any()
}

/// The color of each stack, equal to its color in the figure of allocations colored by stacks, and the
/// entries of the legend that occur.
fn colors(list: &HolderList) -> (BTreeMap<StackId, Role>, Vec<LegendEntry>) {
    let (allocations, recording) = (&list.columns.allocations, &list.columns.recording);
    let groups = Groups::new(allocations, recording, ColorBy::Stack);
    let mut colors = BTreeMap::new();
    let mut present = BTreeSet::new();
    for row in &list.rows {
        let Some(entry) = groups.legend().get(groups.place(*row)) else { continue };
        present.insert(groups.place(*row));
        if let Some(id) = allocations.id(*row) {
            colors.insert(recording.allocation_stack(id), entry.role);
        }
    }
    let entries = present.into_iter().filter_map(|place| groups.legend().get(place).cloned());
    (colors, entries.collect())
}

fn flame_legend(entries: &[LegendEntry]) -> AnyView {
    let entry = |entry: &LegendEntry| {
        view! { <li><span class="swatch" style=swatch(entry)></span>{entry.text.clone()}</li> }.into_any()
    };
    let entries = entries.iter().map(entry).collect::<Vec<_>>();
    view! { <ul class="flame-legend quiet" aria-label="Colors" data-testid="flame-legend">{entries}</ul> }
        .into_any()
}

impl Flame {
    fn stacks(&self) -> &Stacks {
        self.list.columns.recording.stacks()
    }

    fn node_at(&self, event: &web_sys::MouseEvent) -> Option<usize> {
        let (x, y) = surface::offset_px(event);
        match self.drawn.look(|scene| scene.hit(x, y).map(|target| target.what)) {
            Some(TargetId::FlameNode(node)) => Some(node as usize),
            _ => None,
        }
    }

    fn frame_text(&self, place: usize) -> Option<String> {
        let node = self.graph.node(place)?;
        let share = percent(node.bytes, self.list.bytes);
        let name = self.graph.text(self.stacks(), place);
        let mut words =
            format!("{name}\n{} ({share}) in {} allocations", node.bytes, grouped_count(node.count));
        let passed = self.graph.passed_above(place);
        if !passed.is_empty() {
            let names = passed.iter().rev().map(|above| self.graph.text(self.stacks(), *above));
            words = format!("{words}\ncalled by {}", names.collect::<Vec<_>>().join("\n"));
        }
        Some(words)
    }

    /// Enlarges a node and chooses the allocations below it.
    fn choose(&self, place: usize) {
        self.focus.set(place);
        let columns = &self.list.columns;
        let rows = if place == 0 {
            Vec::new()
        } else {
            self.graph.rows_below(&columns.allocations, &columns.recording, &self.list.rows, place)
        };
        self.session.figures().pick(self.graph.text(self.stacks(), place), rows);
    }

    /// The node that an arrow key leads to; `None` for other keys.
    fn neighbor(&self, key: &str) -> Option<usize> {
        let at = self.focus.get_untracked();
        let parent = self.graph.node(at).map_or(0, |node| node.parent);
        let beside = |by: isize| {
            let siblings = self.graph.children(parent);
            let place = siblings.iter().position(|sibling| *sibling == at)?;
            siblings.get(place.checked_add_signed(by)?).copied()
        };
        match key {
            "ArrowDown" => Some(self.graph.children(at).first().copied().unwrap_or(at)),
            "ArrowUp" => Some(parent),
            "ArrowRight" => Some(beside(1).unwrap_or(at)),
            "ArrowLeft" => Some(beside(-1).unwrap_or(at)),
            _ => None,
        }
    }

    fn label(&self) -> String {
        let place = self.focus.get();
        let bytes = self.graph.node(place).map(|node| node.bytes).unwrap_or_default();
        let below: Vec<String> = self
            .graph
            .children(place)
            .iter()
            .take(5)
            .filter_map(|child| Some((child, self.graph.node(*child)?)))
            .map(|(child, node)| format!("{}: {}", self.graph.text(self.stacks(), *child), node.bytes))
            .collect();
        let name = self.graph.text(self.stacks(), place);
        format!(
            "Flame graph at {name}, {bytes}. Below: {}. Arrow keys go from frame to frame.",
            below.join("; ")
        )
    }
}
