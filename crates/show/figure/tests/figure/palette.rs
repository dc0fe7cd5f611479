//! Colors that lie beside each other are distinguishable, also for people who are color blind.

use blockyard_figure::{BreakdownClass, DIMMED_PERCENT, Fill, Pattern, Role, Theme, blended};

use blockyard_record::StackCategory;

type Color = [f64; 3];

/// Linear red, green and blue.
fn linear(text: &str) -> Color {
    [1, 3, 5].map(|at| {
        let value = f64::from(u8::from_str_radix(&text[at..at + 2], 16).unwrap()) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    })
}

fn transformed(matrix: &[Color; 3], [x, y, z]: Color) -> Color {
    matrix.map(|[a, b, c]| a * x + b * y + c * z)
}

/// The visions of people, as matrices of linear red, green and blue: of all colors, and without one kind of
/// cones. The matrices for severity 1.0 of G. M. Machado, M. M. Oliveira and L. A. F. Fernandes, "A
/// Physiologically-based Model for Simulation of Color Vision Deficiency", IEEE Transactions on Visualization
/// and Computer Graphics 15(6), 2009, table 1.
const VISIONS: [(&str, [Color; 3]); 4] = [
    ("all colors", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    (
        "protanopia",
        [
            [0.152_286, 1.052_583, -0.204_868],
            [0.114_503, 0.786_281, 0.099_216],
            [-0.003_882, -0.048_116, 1.051_998],
        ],
    ),
    (
        "deuteranopia",
        [
            [0.367_322, 0.860_646, -0.227_968],
            [0.280_085, 0.672_501, 0.047_413],
            [-0.011_820, 0.042_940, 0.968_881],
        ],
    ),
    (
        "tritanopia",
        [
            [1.255_528, -0.076_749, -0.178_779],
            [-0.078_411, 0.930_809, 0.147_602],
            [0.004_733, 0.691_367, 0.303_900],
        ],
    ),
];

/// CIELAB under D65.
fn lab(color: Color) -> Color {
    let to_xyz = [
        [0.412_456_4, 0.357_576_1, 0.180_437_5],
        [0.212_672_9, 0.715_152_2, 0.072_175_0],
        [0.019_333_9, 0.119_192_0, 0.950_304_1],
    ];
    let [x, y, z] = transformed(&to_xyz, color.map(|part| part.clamp(0.0, 1.0)));
    let [x, y, z] = [x / 0.950_47, y, z / 1.088_83].map(|part: f64| {
        if part > 216.0 / 24_389.0 { part.cbrt() } else { (24_389.0 / 27.0 * part + 16.0) / 116.0 }
    });
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

/// The least distance of two colors over all visions, and whose vision that is.
fn distance(one: Color, other: Color) -> (f64, &'static str) {
    let of = |(name, matrix): &(&'static str, [Color; 3])| {
        let (one, other) = (lab(transformed(matrix, one)), lab(transformed(matrix, other)));
        let sum: f64 = one.iter().zip(other).map(|(one, other)| (one - other).powi(2)).sum();
        (sum.sqrt(), *name)
    };
    VISIONS.iter().map(of).min_by(|one, other| one.0.total_cmp(&other.0)).unwrap()
}

/// The color of an area on the figure's ground. A hatch is distinguished by its lines, which have the full
/// color.
fn of_fill(theme: Theme, fill: Fill) -> Color {
    let (color, ground) = (hex(&theme.color(fill.role)), hex(&theme.color(Role::Background)));
    let opacity = match fill.pattern {
        // On the screen dots lie on this tint.
        Pattern::Dots => Pattern::Tint.tile().tint,
        Pattern::Hatch | Pattern::BackHatch => 1.0,
        other => other.tile().tint,
    };
    let mixed = [0, 1, 2].map(|part| {
        let value = color[part] * f64::from(opacity) + ground[part] * (1.0 - f64::from(opacity));
        format!("{:02x}", value.round() as u8)
    });
    linear(&format!("#{}", mixed.concat()))
}

/// Red, green and blue as the style sheet has them, from 0 to 255.
fn hex(text: &str) -> Color {
    [1, 3, 5].map(|at| f64::from(u8::from_str_radix(&text[at..at + 2], 16).unwrap()))
}

fn assert_apart(theme: Theme, least: f64, one: (&str, Color), other: (&str, Color)) {
    let (found, vision) = distance(one.1, other.1);
    assert!(found >= least, "{theme:?}, {vision}: {} and {} are {found:.1} apart", one.0, other.0);
}

#[test]
fn the_distance_is_that_of_cielab_and_color_blindness_makes_it_smaller() {
    let (red, green) = (linear("#d00000"), linear("#4d6b00"));
    let [lightness, ..] = lab(linear("#ffffff"));
    assert!((lightness - 100.0).abs() < 0.01);
    // The published L*, a* and b* of sRGB red.
    let [lightness, a, b] = lab(linear("#ff0000"));
    assert!((lightness - 53.24).abs() < 0.05 && (a - 80.09).abs() < 0.05 && (b - 67.2).abs() < 0.05);
    let normal: f64 =
        lab(red).iter().zip(lab(green)).map(|(one, other)| (one - other).powi(2)).sum::<f64>().sqrt();
    let (blind, vision) = distance(red, green);
    assert!(blind < normal / 2.0 && vision != "all colors", "{blind:.1} of {normal:.1}, {vision}");
}

/// Any two classes may lie on each other, as those in between may be empty.
#[test]
fn the_areas_of_memory_over_time_are_apart_in_every_vision() {
    for theme in [Theme::Light, Theme::Dark] {
        let varied = Fill { role: Role::Requested, pattern: Pattern::Strong };
        let mut areas = vec![("requested at times", of_fill(theme, varied))];
        let classes = BreakdownClass::ALL.into_iter().take(4);
        areas.extend(classes.map(|class| (class.name(), of_fill(theme, Fill::of(class)))));
        areas.push(("ground", of_fill(theme, Fill::solid(Role::Background))));
        for (index, one) in areas.iter().enumerate() {
            for other in &areas[..index] {
                assert_apart(theme, 14.0, *one, *other);
            }
        }
    }
}

#[test]
fn groups_are_apart_from_each_other_in_every_vision() {
    for theme in [Theme::Light, Theme::Dark] {
        let color = |group: u8| linear(&theme.color(Role::Group(group)));
        for group in 0..Role::GROUPS {
            for other in 0..group {
                let names = [group, other].map(|group| format!("group {group}"));
                assert_apart(theme, 12.0, (&names[0], color(group)), (&names[1], color(other)));
            }
        }
    }
}

/// The grey of all other lines lies on allocations without a stack, and the grey of a program's other memory on
/// the first categories.
#[test]
fn the_greys_are_apart_from_categories_in_every_vision() {
    for theme in [Theme::Light, Theme::Dark] {
        let rest = linear(&theme.color(Role::Group(Role::GROUPS - 1)));
        for site in [0, 1, 2, 3, Role::CATEGORY_COLORS - 1] {
            let color = linear(&theme.color(Role::Category(site)));
            assert_apart(theme, 13.0, (&format!("category {site}"), color), ("the rest", rest));
        }
    }
}

/// Allocations without a stack are the quietest area of a figure.
#[test]
fn what_has_no_stack_is_the_nearest_to_the_background() {
    for theme in [Theme::Light, Theme::Dark] {
        let lightness = |role: Role| lab(linear(&theme.color(role)))[0];
        let from_ground = |role: Role| (lightness(role) - lightness(Role::Background)).abs();
        let unknown = from_ground(Role::Category(Role::CATEGORY_COLORS - 1));
        let others = (0..Role::GROUPS).map(Role::Group).chain((0..5).map(Role::Category));
        for role in others {
            assert!(from_ground(role) > unknown, "{theme:?}: {role:?}");
        }
    }
}

/// In a stack the categories lie on each other in their order, and any of them may be absent. Allocations
/// without a stack are above all of them. Between three of these colors only a careful eye once saw a
/// difference.
#[test]
fn the_categories_of_stacks_are_far_apart_in_every_vision() {
    for theme in [Theme::Light, Theme::Dark] {
        let names = StackCategory::ALL.map(StackCategory::name);
        let colors: Vec<(&str, Color)> = names
            .into_iter()
            .zip([0, 1, 2, 3, 4, Role::CATEGORY_COLORS - 1])
            .map(|(name, site)| (name, linear(&theme.color(Role::Category(site)))))
            .collect();
        assert_eq!(colors.len(), StackCategory::ALL.len());
        for (index, one) in colors.iter().enumerate() {
            for other in &colors[..index] {
                assert_apart(theme, 20.0, *one, *other);
            }
        }
    }
}

/// The grey of the rest lies on any group.
#[test]
fn the_rest_is_apart_from_every_group_in_every_vision() {
    for theme in [Theme::Light, Theme::Dark] {
        let color = |group: u8| linear(&theme.color(Role::Group(group)));
        let rest = Role::GROUPS - 1;
        for group in 0..rest {
            assert_apart(theme, 16.0, (&format!("group {group}"), color(group)), ("the rest", color(rest)));
        }
    }
}

/// Memory of a category lies beside memory of another, and of any state.
#[test]
fn categories_are_apart_from_each_other_and_from_every_state_in_every_vision() {
    for theme in [Theme::Light, Theme::Dark] {
        let background = linear(&theme.color(Role::Background));
        let states: Vec<(&str, Color)> = BreakdownClass::ALL
            .into_iter()
            .map(|class| (class.name(), of_fill(theme, Fill::of(class))))
            // The lines of a hatch and the dots have the full color.
            .chain(
                BreakdownClass::ALL
                    .map(|class| (class.name(), linear(&theme.color(class.role()))))
                    .into_iter()
                    .take(4),
            )
            .chain([("the ground", background)])
            .collect();
        for (index, role) in Role::CATEGORIES.into_iter().enumerate() {
            let name = format!("category {index}");
            let color = linear(&theme.color(role));
            for state in &states {
                assert_apart(theme, 13.0, (&name, color), *state);
            }
            for (other, role) in Role::CATEGORIES.into_iter().enumerate().take(index) {
                let other = (format!("category {other}"), linear(&theme.color(role)));
                assert_apart(theme, 13.0, (&name, color), (&other.0, other.1));
            }
        }
    }
}

/// Somebody who changes the theme, or compares two pictures, finds each line, category and stream by its hue.
/// A hue means nothing where a color is nearly grey; such a color is grey in both themes.
#[test]
fn every_color_has_one_hue_in_both_themes() {
    const NEARLY_GREY: f64 = 12.0;
    let hue = |color: Color| {
        let [_, a, b] = lab(color);
        (b.atan2(a).to_degrees().rem_euclid(360.0), a.hypot(b))
    };
    for role in Role::all() {
        let [light, dark] = [Theme::Light, Theme::Dark].map(|theme| hue(linear(&theme.color(role))));
        if light.1 < NEARLY_GREY && dark.1 < NEARLY_GREY {
            continue;
        }
        let between = (light.0 - dark.0).abs();
        let between = between.min(360.0 - between);
        assert!(between < 20.0, "{role:?} has the hues {:.0} and {:.0}", light.0, dark.0);
        let is_identity = matches!(role, Role::Category(_) | Role::Group(_) | Role::Step(_));
        assert!(!is_identity || light.1.min(dark.1) >= NEARLY_GREY, "{role:?} is grey in one theme alone");
    }
    assert_eq!(Role::GROUPS - 1, 8, "nobody tells more than eight colors apart");
}

/// Blue is live memory and green is cached memory, and neither is anything else.
#[test]
fn no_site_group_or_step_has_the_hue_of_a_state() {
    let hue = |color: Color| {
        let [_, a, b] = lab(color);
        (b.atan2(a).to_degrees().rem_euclid(360.0), a.hypot(b))
    };
    for theme in [Theme::Light, Theme::Dark] {
        let states = [Role::Requested, Role::Cached].map(|role| hue(linear(&theme.color(role))).0);
        let of = |role: &Role| matches!(role, Role::Category(_) | Role::Group(_) | Role::Step(_));
        for role in Role::all().filter(of) {
            let (angle, chroma) = hue(linear(&theme.color(role)));
            for state in states {
                let between = (angle - state).abs().min(360.0 - (angle - state).abs());
                assert!(
                    chroma < 12.0 || between > 20.0,
                    "{theme:?}: {role:?} is {between:.0} degrees from a state"
                );
            }
        }
    }
}

/// Red is a request that failed, and the color of texts is that of the figure's ink: no data has either.
#[test]
fn no_site_group_or_step_looks_like_a_failure_or_like_ink() {
    for theme in [Theme::Light, Theme::Dark] {
        let failure = lab(linear(&theme.color(Role::Failure)));
        let ink = lab(linear(&theme.color(Role::Text)));
        let hue = |[_, a, b]: Color| (b.atan2(a).to_degrees().rem_euclid(360.0), a.hypot(b));
        let of = |role: &Role| matches!(role, Role::Category(_) | Role::Group(_) | Role::Step(_));
        for role in Role::all().filter(of) {
            let color = linear(&theme.color(role));
            let apart = |other: Color| {
                let sum: f64 = lab(color).iter().zip(other).map(|(one, other)| (one - other).powi(2)).sum();
                sum.sqrt()
            };
            assert!(apart(failure) >= 30.0, "{theme:?}: {role:?} is {:.0} from the failure", apart(failure));
            let (angle, chroma) = hue(lab(color));
            let between = (angle - hue(failure).0).abs();
            let between = between.min(360.0 - between);
            assert!(chroma < 20.0 || between > 20.0, "{theme:?}: {role:?} is red, {between:.0} degrees");
            if !matches!(role, Role::Step(_)) {
                assert!(apart(ink) >= 10.0, "{theme:?}: {role:?} is {:.0} from the ink", apart(ink));
                // A person who sees no red recognizes a failure by its lightness, or by the form of its mark.
                assert_apart(
                    theme,
                    9.0,
                    (&format!("{role:?}"), color),
                    ("a failure", linear(&theme.color(Role::Failure))),
                );
            }
        }
    }
}

/// A step differs from the step before by its lightness, which every vision sees.
#[test]
fn the_steps_of_an_ordered_quantity_go_from_the_background_on() {
    for theme in [Theme::Light, Theme::Dark] {
        let lightness = |role: Role| lab(linear(&theme.color(role)))[0];
        let ground = lightness(Role::Background);
        let steps: Vec<f64> =
            (0..Role::STEPS).map(|step| (lightness(Role::Step(step)) - ground).abs()).collect();
        assert!(steps.windows(2).all(|pair| pair[1] - pair[0] >= 7.0), "{theme:?}: {steps:?}");
        for step in 1..Role::STEPS {
            let colors = [step - 1, step].map(|step| linear(&theme.color(Role::Step(step))));
            assert_apart(theme, 7.0, ("a step", colors[0]), ("the next", colors[1]));
        }
    }
}

#[test]
fn a_dimmed_allocation_keeps_its_hue_and_stands_out_from_chosen_ones_and_from_the_ground() {
    let roles = (0..Role::GROUPS).map(Role::Group).chain((0..Role::CATEGORY_COLORS).map(Role::Category));
    for (role, theme) in roles.flat_map(|role| [(role, Theme::Light), (role, Theme::Dark)]) {
        let of = |role: Role| hex(&theme.color(role)).map(|part| part as u8);
        let (own, ground) = (of(role), of(Role::Background));
        let text = |color: [u8; 3]| format!("#{}", color.map(|part| format!("{part:02x}")).concat());
        let dimmed = blended(own, ground, DIMMED_PERCENT);
        let color = |color: [u8; 3]| linear(&text(color));
        let name = format!("{role:?}");
        assert_apart(theme, 20.0, (&name, color(own)), ("dimmed", color(dimmed)));
        assert_apart(theme, 8.0, ("the ground", color(ground)), (&format!("dimmed {name}"), color(dimmed)));
        let hue = |color: [u8; 3]| {
            let [_, a, b] = lab(linear(&text(color)));
            (b.atan2(a).to_degrees(), a.hypot(b))
        };
        let ((own_hue, chroma), (dimmed_hue, _)) = (hue(own), hue(dimmed));
        // A grey has no hue, and the dark ground has one.
        let turned = (own_hue - dimmed_hue + 540.0).rem_euclid(360.0) - 180.0;
        assert!(chroma < 20.0 || turned.abs() < 30.0, "{theme:?}: {name} turns by {turned:.0} degrees");
    }
}
