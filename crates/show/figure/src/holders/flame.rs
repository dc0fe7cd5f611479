//! The flame graph of the call stacks that hold memory.

use blockyard_record::{Bytes, Frame, FrameId, Recording, StackId, Stacks, index_u32};

use crate::allocations::Allocations;
use crate::axis_range::AxisRange;
use crate::conversions::{count_px, px, share};
use crate::fill::{Fill, Pattern};
use crate::geometry::{Rect, Size};
use crate::holders::frame_text;
use crate::labels::baseline;
use crate::role::Role;
use crate::scene::{Dash, Scene, TargetId, TextStyle, Weight};
use crate::text_width::first_fitting;

/// The bytes of allocations by the frames of their stacks: outermost frames on top, the widest child first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlameGraph {
    nodes: Vec<FlameNode>,
}

/// One frame under the frames above it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlameNode {
    /// The frame; `None` for the whole, and for allocations without a stack.
    pub frame: Option<FrameId>,
    /// The index of the node above this node; the whole is above itself.
    pub parent: usize,
    /// The bytes of the allocations whose stacks begin with the node's frames.
    pub bytes: Bytes,
    /// How many allocations these are.
    pub count: usize,
    /// How many frames are above the node.
    pub depth: usize,
    /// The first of the stacks that end here; `None` if none does.
    pub stack: Option<StackId>,
    children: Vec<usize>,
}

/// The frames of a stack that the graph shows, the outermost first: the lines of the program, and what the
/// innermost of them called, first of a package and then of PyTorch. All other frames of libraries say nothing
/// about the program. A stack without a line of the program has its [`Stacks::own_frame`] alone.
fn shown_frames(stacks: &Stacks, stack: StackId) -> Vec<Option<FrameId>> {
    let mut package = None;
    let mut own: Vec<Option<FrameId>> = Vec::new();
    for id in stacks.frames(stack) {
        let frame = stacks.frame(id);
        if !frame.is_of_library() {
            own.push(Some(id));
        } else if own.is_empty() && package.is_none() && is_of_package(frame) {
            package = Some(Some(id));
        }
    }
    if own.is_empty() {
        return vec![stacks.own_frame(stack)];
    }
    own.reverse();
    own.truncate(MAX_DEPTH);
    let called = stacks.called_frame(stack).map(Some).filter(|called| Some(*called) != package);
    own.into_iter().chain(package).chain(called).collect()
}

/// Whether the frame's file is an installed package's, other than PyTorch's.
fn is_of_package(frame: Frame<'_>) -> bool {
    frame.is_of_python_file() && frame.filename.contains("-packages/") && !frame.filename.contains("/torch/")
}

/// A stack is cut off at this depth, so that a damaged or endless recursion draws.
const MAX_DEPTH: usize = 120;

impl FlameGraph {
    /// The flame graph of the rows. The bytes of the whole are the sum of the rows' sizes.
    #[must_use]
    pub fn new(allocations: &Allocations, recording: &Recording, rows: &[usize]) -> Self {
        let mut held: std::collections::BTreeMap<StackId, (Bytes, usize)> = std::collections::BTreeMap::new();
        for row in rows {
            let Some(allocation) = allocations.get(*row) else { continue };
            let (bytes, count) = held.entry(recording.allocation_stack(allocation.id)).or_default();
            *bytes = bytes.saturating_add(allocation.size);
            *count += 1;
        }
        let mut graph = Self { nodes: vec![FlameNode::default()] };
        for (stack, (bytes, count)) in held {
            graph.add(recording.stacks(), stack, bytes, count);
        }
        graph.fold(recording.stacks());
        for index in 0..graph.nodes.len() {
            let mut children = std::mem::take(&mut graph.nodes[index].children);
            children.sort_by_key(|child| (std::cmp::Reverse(graph.nodes[*child].bytes), *child));
            graph.nodes[index].children = children;
        }
        graph
    }

    fn add(&mut self, stacks: &Stacks, stack: StackId, bytes: Bytes, count: usize) {
        let mut at = 0;
        self.grow(at, bytes, count);
        for frame in shown_frames(stacks, stack) {
            let child =
                self.nodes[at].children.iter().copied().find(|child| self.nodes[*child].frame == frame);
            at = child.unwrap_or_else(|| self.insert(at, frame));
            self.grow(at, bytes, count);
        }
        // Stacks that differ only in frames that are left out end at one node, and nearly always belong to
        // one site.
        self.nodes[at].stack.get_or_insert(stack);
    }

    /// Leaves out the call of a library below a line that calls nothing else: the line says as much.
    fn fold(&mut self, stacks: &Stacks) {
        for index in (1..self.nodes.len()).rev() {
            let [only] = self.nodes[index].children[..] else { continue };
            let called = &self.nodes[only];
            let is_of_library = called.frame.is_some_and(|frame| stacks.frame(frame).is_of_library());
            if is_of_library && called.children.is_empty() && self.nodes[index].stack.is_none() {
                self.nodes[index].stack = called.stack;
                self.nodes[index].children.clear();
            }
        }
    }

    fn insert(&mut self, parent: usize, frame: Option<FrameId>) -> usize {
        let index = self.nodes.len();
        let depth = self.nodes[parent].depth + 1;
        self.nodes.push(FlameNode {
            frame,
            parent,
            bytes: Bytes::ZERO,
            count: 0,
            depth,
            stack: None,
            children: Vec::new(),
        });
        self.nodes[parent].children.push(index);
        index
    }

    fn grow(&mut self, index: usize, bytes: Bytes, count: usize) {
        let node = &mut self.nodes[index];
        node.bytes = node.bytes.saturating_add(bytes);
        node.count += count;
    }

    /// The node with this number; the whole is number 0.
    pub fn node(&self, index: usize) -> Option<&FlameNode> {
        self.nodes.get(index)
    }

    /// The nodes below the node, the widest first.
    pub fn children(&self, index: usize) -> &[usize] {
        self.nodes.get(index).map_or(&[], |node| &node.children)
    }

    /// Whether a frame only passes on to one other frame: no stack ends at it.
    fn is_passed(&self, index: usize) -> bool {
        let node = self.nodes.get(index);
        node.is_some_and(|node| node.depth > 0 && node.stack.is_none() && node.children.len() == 1)
    }

    /// The frames right above the node that only pass on to it, and so have no separate row; the outermost
    /// first.
    pub fn passed_above(&self, index: usize) -> Vec<usize> {
        let mut passed: Vec<usize> =
            self.path(index).into_iter().rev().skip(1).take_while(|above| self.is_passed(*above)).collect();
        passed.reverse();
        passed
    }

    /// The nodes from the whole to the node.
    pub fn path(&self, index: usize) -> Vec<usize> {
        let mut path = vec![index];
        while let Some(node) =
            path.last().and_then(|last| self.nodes.get(*last)).filter(|node| node.depth > 0)
        {
            path.push(node.parent);
        }
        path.reverse();
        path
    }

    /// The node in words: `all` for the whole.
    pub fn text(&self, stacks: &Stacks, index: usize) -> String {
        match self.nodes.get(index) {
            Some(FlameNode { frame: Some(frame), .. }) => frame_text(stacks.frame(*frame)),
            Some(FlameNode { depth: 0, .. }) => "all".to_owned(),
            _ => "no stack was recorded".to_owned(),
        }
    }

    /// The frames from the outermost to the node's own, for comparison with stacks; `None` for the whole.
    fn frames(&self, index: usize) -> Vec<Option<FrameId>> {
        self.path(index)
            .into_iter()
            .skip(1)
            .filter_map(|at| self.nodes.get(at))
            .map(|node| node.frame)
            .collect()
    }

    /// The rows among `rows` whose stacks begin with the node's frames, in their order.
    pub fn rows_below(
        &self,
        allocations: &Allocations,
        recording: &Recording,
        rows: &[usize],
        index: usize,
    ) -> Vec<usize> {
        let wanted = self.frames(index);
        let stacks = recording.stacks();
        let is_below = |stack: StackId| shown_frames(stacks, stack).starts_with(&wanted);
        let mut known: rustc_hash::FxHashMap<StackId, bool> = rustc_hash::FxHashMap::default();
        let stack_of = |row: &usize| allocations.id(*row).map(|id| recording.allocation_stack(id));
        let mut below = |row: &usize| {
            stack_of(row).is_some_and(|stack| *known.entry(stack).or_insert_with(|| is_below(stack)))
        };
        rows.iter().copied().filter(|row| below(row)).collect()
    }
}

const TEXT_PX: f32 = 11.0;
/// The width of the strip at the left of a node that has the node's full color.
const EDGE_PX: f32 = 4.0;
/// The height of a row, which is one line of text.
const ROW_PX: f32 = 22.0;

/// The nodes in a part of the width of the whole, with a frame around the chosen node, unless this is the
/// whole. Nodes narrower than a pixel are left out. Frames that only pass on to one other frame have no row:
/// [`FlameGraph::passed_above`] has them. Nodes at which stacks end have the color that `role_of` gives to
/// the stack; the others are grey.
pub fn flame_scene(
    graph: &FlameGraph,
    stacks: &Stacks,
    part: AxisRange,
    chosen: usize,
    width_px: f32,
    role_of: &dyn Fn(StackId) -> Option<Role>,
) -> Scene {
    let width_px = Size::new(width_px, 1.0).tame().width_px;
    let x = |share: f64| px((share - part.from) / (part.to - part.from)) * width_px;
    let mut boxes: Vec<(usize, f32, f32)> = Vec::new();
    let mut pending: Vec<(usize, f64, f64)> = vec![(0, 0.0, 1.0)];
    while let Some((index, left, width)) = pending.pop() {
        let (from, to) = (x(left).max(0.0), x(left + width).min(width_px));
        // The root is drawn also without bytes.
        if to - from < 1.0 && index > 0 {
            continue;
        }
        boxes.push((index, from, to - from));
        let Some(node) = graph.node(index) else { continue };
        let mut at = left;
        for child in graph.children(index) {
            let Some(part) = graph.node(*child) else { continue };
            let part = share(part.bytes, node.bytes) * width;
            pending.push((*child, at, part));
            at += part;
        }
    }
    // The row of a node: how many nodes above it have a row.
    let row_of = |index: usize| {
        graph.path(index).into_iter().filter(|above| *above != index && !graph.is_passed(*above)).count()
    };
    boxes.retain(|(index, ..)| !graph.is_passed(*index));
    let boxes: Vec<(usize, (f32, f32, usize))> =
        boxes.into_iter().map(|(index, left, width)| (index, (left, width, row_of(index)))).collect();
    let rows = boxes.iter().map(|(_, (.., row))| row + 1).max().unwrap_or(1);
    let mut scene = Scene::new(width_px, count_px(rows) * ROW_PX);
    let mut framed = None;
    for (index, at) in boxes {
        let role = graph.node(index).and_then(|node| role_of(node.stack?));
        if index == chosen {
            framed = Some(at);
        }
        draw(&mut scene, graph, stacks, index, at, role);
    }
    if let Some((left, width, row)) = framed.filter(|_| chosen > 0) {
        let frame = Rect::new(left, count_px(row) * ROW_PX, width, ROW_PX);
        scene.add_frame(frame, Role::Selection, Dash::Solid, 2.0);
    }
    scene
}

fn draw(
    scene: &mut Scene,
    graph: &FlameGraph,
    stacks: &Stacks,
    index: usize,
    (left, width, row): (f32, f32, usize),
    role: Option<Role>,
) {
    let top = count_px(row) * ROW_PX;
    let rect = Rect::new(left, top, width, ROW_PX);
    let inner = Rect::new(left, top, (width - 1.0).max(0.5), ROW_PX - 1.0);
    match role {
        // The left end has the full color, and a tint is under the text.
        Some(role) => {
            scene.add_rect(inner, Fill { role, pattern: Pattern::Tint }, None);
            let edge = Rect { width_px: EDGE_PX.min(inner.width_px), ..inner };
            scene.add_rect(edge, Fill::solid(role), None);
        }
        None => scene.add_rect(inner, Fill { role: Role::TextMuted, pattern: Pattern::Faint }, None),
    }
    if let Some(text) = text(graph, stacks, index, width - 10.0) {
        let at = crate::geometry::Point::new(left + 7.0, baseline(inner.center().y_px, TEXT_PX));
        scene.add_text(at, text, TextStyle::new(Role::Text, TEXT_PX));
    }
    scene.add_target(rect, TargetId::FlameNode(index_u32(index)));
}

/// The text of a node. Names and numbers that have no room are left out, the least important first; none is
/// cut off.
fn text(graph: &FlameGraph, stacks: &Stacks, index: usize, room_px: f32) -> Option<String> {
    let node = graph.node(index)?;
    let whole = graph.text(stacks, index);
    let bytes = node.bytes.to_string();
    let name = node.frame.map(|frame| stacks.frame(frame).name.to_owned()).filter(|name| !name.is_empty());
    let texts = [format!("{whole}  {bytes}"), whole];
    let texts: Vec<String> = texts.into_iter().chain(name).chain([bytes]).collect();
    first_fitting(&texts, TEXT_PX, Weight::Normal, room_px).map(str::to_owned)
}
