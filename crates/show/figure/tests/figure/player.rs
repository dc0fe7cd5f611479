use blockyard_figure::{Changes, MoveUnit, Player, PlayerAction, StateCursor, reduce};
use blockyard_record::{Bytes, Recording};
use proptest::prelude::*;
use std::sync::Arc;

use crate::program::{Program, ops, random, story};

fn run(recording: &Recording, from: &Player, actions: &[PlayerAction]) -> Player {
    actions.iter().fold(from.clone(), |player, action| reduce(&player, *action, recording))
}

fn steps(recording: &Recording, actions: &[PlayerAction]) -> usize {
    run(recording, &Player::default(), actions).steps
}

use PlayerAction::{
    Back, BackMany, End, Forward, ForwardMany, Loaded, NextDeviceCall, NextFailedStep, NextLabel,
    NextOfBlock, Pause, Play, PreviousDeviceCall, PreviousFailedStep, PreviousLabel, PreviousOfBlock,
    SeekEvent, SeekStep, SetUnit, Start, Tick, Toggle,
};

#[test]
fn a_step_without_events_is_a_step_too() {
    let mut program = Program::new(Bytes::mib(64));
    program.refused("not now").alloc("a", Bytes::mib(1)).refused("not again").free("a");
    let recording = program.recording();
    let seen: Vec<_> = (0..=5)
        .scan(Player::default(), |player, _| {
            let seen = (player.steps, player.current_step(&recording));
            *player = reduce(player, Forward, &recording);
            Some(seen)
        })
        .collect();
    assert_eq!(seen, [(0, None), (1, Some(0)), (2, Some(1)), (3, Some(2)), (4, Some(3)), (4, Some(3))]);
    assert_eq!(steps(&recording, &[End, Back, Back]), 2);
}

#[test]
fn labels_are_gone_through_both_ways() {
    let recording = story().recording();
    assert_eq!(steps(&recording, &[NextLabel]), 2);
    assert_eq!(steps(&recording, &[NextLabel, NextLabel]), 9);
    assert_eq!(steps(&recording, &[NextLabel, NextLabel, NextLabel]), 9);
    assert_eq!(steps(&recording, &[End, PreviousLabel]), 9);
    assert_eq!(steps(&recording, &[End, PreviousLabel, PreviousLabel, PreviousLabel]), 0);
}

#[test]
fn failures_are_shown_after_their_step() {
    let mut program = Program::new(Bytes::mib(64));
    program
        .alloc("a", Bytes::mib(1))
        .alloc("b", Bytes::gib(1))
        .alloc("c", Bytes::mib(1))
        .alloc("d", Bytes::gib(2));
    let recording = program.recording();
    assert_eq!(steps(&recording, &[NextFailedStep]), 2);
    assert_eq!(steps(&recording, &[NextFailedStep, NextFailedStep]), 4);
    assert_eq!(steps(&recording, &[NextFailedStep, NextFailedStep, NextFailedStep]), 4);
    assert_eq!(steps(&recording, &[End, PreviousFailedStep]), 2);
    assert_eq!(steps(&recording, &[End, PreviousFailedStep, PreviousFailedStep]), 2);
}

#[test]
fn segment_calls_and_the_life_of_a_block_are_found() {
    let program = story();
    let hidden = program.block("weights");
    let recording = program.recording();
    assert_eq!(steps(&recording, &[NextDeviceCall, NextDeviceCall, NextDeviceCall]), 3);
    assert_eq!(steps(&recording, &[End, PreviousDeviceCall]), 15);
    assert_eq!(steps(&recording, &[NextOfBlock(hidden)]), 1);
    assert_eq!(steps(&recording, &[NextOfBlock(hidden), NextOfBlock(hidden)]), 1);
    assert_eq!(steps(&recording, &[End, PreviousOfBlock(hidden)]), 1);
}

#[test]
fn playing_earns_parts_of_steps_and_stops_at_the_end() {
    let recording = story().recording();
    let slow = Player { speed: 2.0, ..Player::default() };
    let tick = Tick { elapsed_millis: 200.0 };
    assert_eq!(run(&recording, &slow, &[Play, tick, tick]).steps, 0);
    let player = run(&recording, &slow, &[Play, tick, tick, tick]);
    assert_eq!((player.steps, player.is_playing), (1, true));
    assert!((player.earned - 0.2).abs() < 1e-9);
    let player = reduce(&player, Tick { elapsed_millis: 1e9 }, &recording);
    assert_eq!((player.steps, player.is_playing), (16, false));
    assert_eq!(reduce(&player, Play, &recording).steps, 0);
    assert_eq!(reduce(&player, tick, &recording), player);
}

#[test]
fn a_hand_on_the_controls_ends_playing() {
    let recording = story().recording();
    assert!(!run(&recording, &Player::default(), &[Play, Forward]).is_playing);
    assert!(!run(&recording, &Player::default(), &[Toggle, Toggle]).is_playing);
}

#[test]
fn by_events_every_event_is_visited_and_only_it_is_emphasized() {
    let recording = story().recording();
    let mut player = run(&recording, &Player::default(), &[SetUnit(MoveUnit::Event)]);
    for event in 0..recording.event_count() {
        player = reduce(&player, Forward, &recording);
        assert_eq!(player.cursor, event + 1);
        assert_eq!(player.changed_events(&recording), (event, event + 1));
        assert_eq!(player.current_step(&recording), recording.step_of_event(event));
    }
    let third = recording.step(2).unwrap();
    let middle = run(&recording, &Player::default(), &[SetUnit(MoveUnit::Event), SeekEvent(third.start + 1)]);
    assert_eq!(run(&recording, &middle, &[SetUnit(MoveUnit::Step)]).cursor, third.end);
}

#[test]
fn a_new_recording_keeps_the_place_or_goes_to_its_end() {
    let recording = story().recording();
    let player = Player { cursor: 900, steps: 500, ..Player::default() };
    assert_eq!(reduce(&player, Loaded { is_at_end: false }, &recording).steps, 16);
    let early = Player { cursor: 2, steps: 1, ..Player::default() };
    assert_eq!(reduce(&early, Loaded { is_at_end: false }, &recording).steps, 1);
    assert_eq!(reduce(&early, Loaded { is_at_end: true }, &recording).steps, 16);
}

#[test]
fn what_a_step_released_is_remembered_with_its_place() {
    let recording = story().recording();
    let step = recording.step(12).unwrap();
    let changes = Changes::of(&recording, step.start, step.end);
    let released: Vec<_> = changes.released.iter().map(|ghost| ghost.size).collect();
    assert_eq!(released, [Bytes::mib(20)]);
    assert_eq!(changes.new_segments.len(), 1);
    assert!(Changes::of(&recording, 3, 3).is_empty());
}

fn action() -> impl Strategy<Value = PlayerAction> {
    let block = (0_u32..40).prop_map(blockyard_record::BlockId::new);
    prop_oneof![
        prop::sample::select(vec![
            Forward,
            Back,
            ForwardMany,
            BackMany,
            Start,
            End,
            NextLabel,
            PreviousLabel,
            NextFailedStep,
            PreviousFailedStep,
            NextDeviceCall,
            PreviousDeviceCall,
            Play,
            Pause,
            Toggle,
            SetUnit(MoveUnit::Step),
            SetUnit(MoveUnit::Event),
        ]),
        (0_usize..100).prop_map(SeekStep),
        (0_usize..300).prop_map(SeekEvent),
        block.clone().prop_map(NextOfBlock),
        block.prop_map(PreviousOfBlock),
        any::<f64>().prop_map(|elapsed_millis| Tick { elapsed_millis }),
        (0.0_f64..2000.0).prop_map(|elapsed_millis| Tick { elapsed_millis }),
        any::<bool>().prop_map(|is_at_end| Loaded { is_at_end }),
    ]
}

proptest! {
    #[test]
    fn the_player_never_leaves_the_recording(
        ops in ops(60),
        actions in prop::collection::vec(action(), 0..60),
    ) {
        let recording = random(&ops).recording();
        let mut player = Player::default();
        for action in actions {
            player = reduce(&player, action, &recording);
            prop_assert!(player.cursor <= recording.event_count(), "{:?}", action);
            prop_assert!(player.steps <= recording.step_count(), "{:?}", action);
            let done = player.steps.checked_sub(1).map_or(0, |step| recording.step(step).unwrap().end);
            let under_way = recording.step(player.steps).map_or(recording.event_count(), |step| step.end);
            prop_assert!((done..=under_way).contains(&player.cursor), "{:?} gives {:?}", action, player);
            let is_move = matches!(action, Forward | Back | ForwardMany | BackMany | Start | End | SeekStep(_));
            prop_assert!(
                player.unit == MoveUnit::Event || !is_move || player.cursor == done || player.steps == recording.step_count(),
                "{:?} stops within a step", action
            );
            prop_assert!((0.0..=1.0).contains(&player.earned), "{:?}", player);
        }
    }

    #[test]
    fn the_state_cursor_gives_what_a_fresh_replay_gives(
        ops in ops(80),
        moments in prop::collection::vec(0.0_f64..1.1, 0..20),
    ) {
        let recording = Arc::new(random(&ops).recording());
        let mut cursor = StateCursor::new(Arc::clone(&recording));
        for moment in moments {
            let events = (moment * recording.event_count() as f64) as usize;
            let expected = recording.state_at(events).unwrap();
            let found = cursor.at(events).unwrap();
            prop_assert_eq!(found.snapshot(), expected.snapshot());
            prop_assert_eq!(found.stats(), expected.stats());
        }
    }
}
