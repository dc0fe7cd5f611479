//! The position in a recording, and the pure reducer by which actions move the position.

mod jumps;

use blockyard_record::{BlockId, Recording};

use crate::conversions::{count_f64, floor_count};
use crate::player::jumps::{
    SearchDirection, is_device_call, names, next_failed_step, next_label, previous_failed_step,
    previous_label, search,
};

/// The position in a recording, and the playback.
///
/// Some steps have no events (a refused request), so the number of events alone does not determine the step
/// that is shown. `steps` does, and `cursor` is never before the end of the last complete step.
#[derive(Clone, Debug, PartialEq)]
pub struct Player {
    /// How many events are applied.
    pub cursor: usize,
    /// How many steps are complete.
    pub steps: usize,
    /// Whether the player is playing.
    pub is_playing: bool,
    /// The speed in units a second.
    pub speed: f32,
    /// The unit of one move.
    pub unit: MoveUnit,
    /// The part of the next move for which time has passed, from 0 to 1.
    pub earned: f64,
}

/// The unit of a move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MoveUnit {
    /// One request of the workload.
    #[default]
    Step,
    /// One event inside the allocator.
    Event,
}

/// An action of the user, or a tick of the clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PlayerAction {
    /// One unit forward.
    Forward,
    /// One unit back.
    Back,
    /// Many units forward.
    ForwardMany,
    /// Many units back.
    BackMany,
    /// Before the first event.
    Start,
    /// After the last event.
    End,
    /// To where this many steps are complete.
    SeekStep(usize),
    /// To where this many events are applied.
    SeekEvent(usize),
    /// To the next label.
    NextLabel,
    /// To the label before.
    PreviousLabel,
    /// To the end of the next step that failed.
    NextFailedStep,
    /// To the end of the last failed step before this moment.
    PreviousFailedStep,
    /// To the end of the next step (or event) with a call of the device: a segment was allocated, failed or
    /// was released.
    NextDeviceCall,
    /// To the end of the last step (or event) before this moment with a call of the device.
    PreviousDeviceCall,
    /// To the next step (or event) that names the block.
    NextOfBlock(BlockId),
    /// To the last step (or event) before this moment that names the block.
    PreviousOfBlock(BlockId),
    /// Play; from the start, if the player is at the end.
    Play,
    /// Stop playing.
    Pause,
    /// Play or pause.
    Toggle,
    /// Another unit for moves.
    SetUnit(MoveUnit),
    /// Time has passed.
    Tick {
        /// The time since the last tick, in milliseconds.
        elapsed_millis: f64,
    },
    /// Another recording replaced the old one.
    Loaded {
        /// Whether to go to the end of the new recording.
        is_at_end: bool,
    },
}

impl Default for Player {
    fn default() -> Self {
        Self { cursor: 0, steps: 0, is_playing: false, speed: 4.0, unit: MoveUnit::Step, earned: 0.0 }
    }
}

impl Player {
    /// A player at the end of the recording.
    #[must_use]
    pub fn at_end(recording: &Recording) -> Self {
        Self { cursor: recording.event_count(), steps: recording.step_count(), ..Self::default() }
    }

    /// The step that is shown: a step in progress, or else the last complete step; `None` before the first.
    pub fn current_step(&self, recording: &Recording) -> Option<usize> {
        if self.cursor > end_of(recording, self.steps) { Some(self.steps) } else { self.steps.checked_sub(1) }
    }

    /// The events whose changes are to be emphasized: from the first to before the second.
    pub fn changed_events(&self, recording: &Recording) -> (usize, usize) {
        let start =
            self.current_step(recording).and_then(|step| recording.step(step)).map_or(0, |step| step.start);
        match self.unit {
            MoveUnit::Step => (start, self.cursor),
            MoveUnit::Event => (self.cursor.saturating_sub(1).max(start), self.cursor),
        }
    }

    /// Whether this is the end.
    pub fn is_at_end(&self, recording: &Recording) -> bool {
        self.steps >= recording.step_count() && self.cursor >= recording.event_count()
    }

    /// Whether this is the start.
    pub fn is_at_start(&self) -> bool {
        self.steps == 0 && self.cursor == 0
    }
}

/// How many units [`PlayerAction::ForwardMany`] and [`PlayerAction::BackMany`] move.
pub const MANY_UNITS: usize = 100;

/// How many events are applied once `steps` steps are complete.
fn end_of(recording: &Recording, steps: usize) -> usize {
    steps.checked_sub(1).and_then(|last| recording.step(last)).map_or(0, |step| step.end)
}

/// The player after the action. It never leaves the recording.
pub fn reduce(player: &Player, action: PlayerAction, recording: &Recording) -> Player {
    let moved = match action {
        PlayerAction::Forward => move_by(player, 1, recording),
        PlayerAction::Back => move_by(player, -1, recording),
        PlayerAction::ForwardMany => move_by(player, MANY_UNITS.cast_signed(), recording),
        PlayerAction::BackMany => move_by(player, MANY_UNITS.cast_signed().saturating_neg(), recording),
        PlayerAction::Start => seek_step(player, 0, recording),
        PlayerAction::End => seek_step(player, usize::MAX, recording),
        PlayerAction::SeekStep(steps) => seek_step(player, steps, recording),
        PlayerAction::SeekEvent(events) => seek_event(player, events, recording),
        PlayerAction::NextLabel => next_label(player, recording),
        PlayerAction::PreviousLabel => previous_label(player, recording),
        PlayerAction::NextFailedStep => next_failed_step(player, recording),
        PlayerAction::PreviousFailedStep => previous_failed_step(player, recording),
        PlayerAction::NextDeviceCall => search(player, recording, SearchDirection::Forward, is_device_call),
        PlayerAction::PreviousDeviceCall => search(player, recording, SearchDirection::Back, is_device_call),
        PlayerAction::NextOfBlock(block) => {
            search(player, recording, SearchDirection::Forward, |event| names(event, block))
        }
        PlayerAction::PreviousOfBlock(block) => {
            search(player, recording, SearchDirection::Back, |event| names(event, block))
        }
        PlayerAction::Tick { elapsed_millis } => return tick(player, elapsed_millis, recording),
        PlayerAction::Loaded { is_at_end: goes_to_end } => return loaded(player, goes_to_end, recording),
        PlayerAction::Play => return play(player, recording),
        PlayerAction::Pause => return pause(player),
        PlayerAction::Toggle => {
            return if player.is_playing { pause(player) } else { play(player, recording) };
        }
        PlayerAction::SetUnit(unit) => {
            return to_whole_step(&Player { unit, earned: 0.0, ..player.clone() }, recording);
        }
    };
    // Any move by the user stops playing.
    Player { is_playing: false, earned: 0.0, ..moved }
}

fn play(player: &Player, recording: &Recording) -> Player {
    let from = if player.is_at_end(recording) { seek_step(player, 0, recording) } else { player.clone() };
    Player { is_playing: true, earned: 0.0, ..from }
}

fn pause(player: &Player) -> Player {
    Player { is_playing: false, earned: 0.0, ..player.clone() }
}

/// When the unit is a step, a position in the middle of a step moves to the end of the step.
fn to_whole_step(player: &Player, recording: &Recording) -> Player {
    match (player.unit, player.current_step(recording)) {
        (MoveUnit::Step, Some(step)) => seek_step(player, step + 1, recording),
        _ => player.clone(),
    }
}

fn loaded(player: &Player, goes_to_end: bool, recording: &Recording) -> Player {
    let steps = if goes_to_end { usize::MAX } else { player.steps };
    Player {
        is_playing: player.is_playing && !goes_to_end,
        earned: 0.0,
        ..seek_step(player, steps, recording)
    }
}

fn seek_step(player: &Player, steps: usize, recording: &Recording) -> Player {
    let steps = steps.min(recording.step_count());
    // Events after the last step (of a run that was cut short) belong to the end.
    let cursor =
        if steps == recording.step_count() { recording.event_count() } else { end_of(recording, steps) };
    Player { cursor, steps, ..player.clone() }
}

fn seek_event(player: &Player, events: usize, recording: &Recording) -> Player {
    let cursor = events.min(recording.event_count());
    Player { cursor, steps: recording.steps_done(cursor), ..player.clone() }
}

fn move_by(player: &Player, count: isize, recording: &Recording) -> Player {
    match player.unit {
        MoveUnit::Step if count >= 0 => {
            seek_step(player, player.steps.saturating_add_signed(count), recording)
        }
        MoveUnit::Step => {
            // From within a step, the first move back goes to the step's beginning.
            let is_partial = player.cursor > end_of(recording, player.steps);
            let count = if is_partial { count.saturating_add(1) } else { count };
            seek_step(player, player.steps.saturating_add_signed(count), recording)
        }
        MoveUnit::Event => {
            let target = player.cursor.saturating_add_signed(count);
            let moved = seek_event(player, target, recording);
            if moved.cursor != player.cursor {
                return moved;
            }
            // Only steps without events are left on that side.
            let end = if count > 0 { usize::MAX } else { 0 };
            seek_step(player, end, recording)
        }
    }
}

fn tick(player: &Player, elapsed_millis: f64, recording: &Recording) -> Player {
    if !player.is_playing {
        return player.clone();
    }
    let elapsed_millis = if elapsed_millis.is_finite() { elapsed_millis.max(0.0) } else { 0.0 };
    let earned = player.earned + elapsed_millis / 1000.0 * f64::from(player.speed.clamp(0.1, 1_000_000.0));
    let whole = floor_count(earned).min(usize::MAX / 4);
    if whole == 0 {
        return Player { earned, ..player.clone() };
    }
    let moved = move_by(player, whole.cast_signed(), recording);
    if moved.is_at_end(recording) {
        return pause(&moved);
    }
    Player { earned: earned - count_f64(whole), ..moved }
}
