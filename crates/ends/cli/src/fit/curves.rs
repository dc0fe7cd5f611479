//! The curves of a search, for the page of `--report`.

use blockyard_fit::Probe;
use blockyard_record::Bytes;
use blockyard_report::{FitCurve, FitOutcome, FitPoint, FitReport, fit_report};

use super::answer::LargestOnGpu;
use super::runs::{RunConditions, Runs};
use super::text;
use super::vary::Vary;

/// The page with a curve and the largest value for each GPU, without the parts that all pages have.
pub(super) fn curve_page(vary: &Vary, answers: &[LargestOnGpu]) -> FitReport {
    let curves = answers.iter().map(|answer| {
        let mut curve =
            curve(answer.conditions.gpu.name, &answer.conditions, answer.largest, &answer.found.probes);
        curve.points.extend(answer.needs.iter().map(|needs| point(needs, FitOutcome::WithoutLimit)));
        curve
    });
    let headline = if let [one] = answers {
        text::sentence(vary, one)
    } else {
        let largest = answers.iter().map(|answer| {
            let most = answer.largest.map_or_else(|| "none".to_owned(), |largest| largest.to_string());
            format!("{most} on {}", answer.conditions.gpu.name)
        });
        format!("the largest {} of {}: {}", vary.name, vary.values, largest.collect::<Vec<_>>().join(", "))
    };
    FitReport { varied: vary.name.clone(), headline, curves: curves.collect(), ..FitReport::default() }
}

/// The runs of one search.
pub(super) fn curve(
    name: &str,
    conditions: &RunConditions,
    largest: Option<u64>,
    probes: &[Probe],
) -> FitCurve {
    let outcome = |probe: &Probe| if probe.fits { FitOutcome::Fits } else { FitOutcome::RunsOut };
    FitCurve {
        name: name.to_owned(),
        limit: largest_of(probes, largest).map_or_else(|| conditions.most(), |probe| conditions.left(probe)),
        gpu: conditions.gpu.name.to_owned(),
        largest,
        points: probes.iter().map(|probe| point(probe, outcome(probe))).collect(),
    }
}

/// The run of the largest value; if no value fits, the last run.
fn largest_of(probes: &[Probe], largest: Option<u64>) -> Option<&Probe> {
    probes.iter().find(|probe| Some(probe.value) == largest).or(probes.last())
}

fn point(probe: &Probe, outcome: FitOutcome) -> FitPoint {
    let [allocated, reserved]: [Bytes; 2] = [probe.peak_allocated, probe.peak_reserved];
    FitPoint { value: probe.value, allocated, reserved, outcome }
}

/// The whole page.
pub(super) fn html(runs: &Runs<'_>, page: &FitReport, text: &str) -> String {
    let options = runs.options;
    let mut facts = vec![
        ("PyTorch".to_owned(), runs.torch.version.clone()),
        ("Steps".to_owned(), format!("at most {} of the first optimizer in each run", options.steps)),
    ];
    let given =
        [("Arguments", options.arguments.join(" ")), ("Settings", options.conf.clone().unwrap_or_default())];
    facts.extend(
        given
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| (name.to_owned(), value)),
    );
    let program = options.file.file_name().unwrap_or(options.file.as_os_str()).to_string_lossy().into_owned();
    fit_report(&FitReport { program, text: text.to_owned(), facts, ..page.clone() })
}
