//! The page of a fit's JSON.

use std::collections::BTreeMap;

use blockyard_record::Bytes;
use blockyard_rules::conf_text;
use serde::Deserialize;

use super::{FitCurve, FitOutcome, FitPoint, FitReport, fit_report};

/// The fields of the JSON of `blockyard fit` that a page needs, whose types are in `crates/base/answers`.
/// Reading all of it would more than double the code that a browser fetches for a report.
#[derive(Deserialize)]
struct FitFile {
    program: String,
    arguments: Vec<String>,
    steps: u32,
    torch: String,
    vary: VariedOption,
    others: Vec<GpuSearch>,
}

#[derive(Deserialize)]
struct VariedOption {
    name: String,
}

#[derive(Deserialize)]
struct Gpu {
    name: String,
}

/// The search on one GPU: its runs, or a row for each value of another option, for each setting or layout.
#[derive(Deserialize)]
struct GpuSearch {
    gpu: Gpu,
    limit: u64,
    fraction: Option<f64>,
    largest: Option<u64>,
    needs: Option<Probe>,
    #[serde(default)]
    probes: Vec<Probe>,
    rows: Option<Vec<Row>>,
}

#[derive(Deserialize)]
struct Row {
    value: Option<u64>,
    conf: Option<String>,
    layout: Option<BTreeMap<String, u64>>,
    largest: Option<u64>,
    probes: Vec<Probe>,
}

#[derive(Deserialize)]
struct Probe {
    value: u64,
    fits: bool,
    peak_allocated: u64,
    peak_reserved: u64,
    #[serde(rename = "outside")]
    non_pytorch: Vec<Holder>,
}

#[derive(Deserialize)]
struct Holder {
    bytes: u64,
}

/// The page of a report that `blockyard fit --json` wrote, as HTML; `None` as for [`fit_page`].
pub(crate) fn page_of_answer(bytes: &[u8]) -> Option<String> {
    fit_page(bytes).map(|page| fit_report(&page))
}

/// The curves of a report that `blockyard fit --json` wrote, for [`fit_report`]. `None` where the file is not
/// such a report, or is about settings or layouts without a value to search.
pub fn fit_page(bytes: &[u8]) -> Option<FitReport> {
    // Other files are large, and are not read to their end for this.
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return None;
    }
    // In the JSON, the fields of the first GPU's answer are beside the fields of the whole answer.
    let (found, first): (FitFile, GpuSearch) =
        (serde_json::from_slice(bytes).ok()?, serde_json::from_slice(bytes).ok()?);
    let curves: Vec<FitCurve> = std::iter::once(&first).chain(&found.others).flat_map(curves_of).collect();
    let largest = curves.iter().map(|curve| {
        let most = curve.largest.map_or_else(|| "none".to_owned(), |largest| largest.to_string());
        format!("{most} ({})", curve.name)
    });
    let headline =
        format!("the largest {} that fits: {}", found.vary.name, largest.collect::<Vec<_>>().join(", "));
    let mut facts = vec![
        ("PyTorch".to_owned(), found.torch),
        ("Steps".to_owned(), format!("at most {} of the first optimizer in each run", found.steps)),
    ];
    if !found.arguments.is_empty() {
        facts.push(("Arguments".to_owned(), found.arguments.join(" ")));
    }
    let (program, varied) = (found.program, found.vary.name);
    Some(FitReport { program, varied, headline, curves, text: String::new(), facts })
}

fn curves_of(found: &GpuSearch) -> Vec<FitCurve> {
    if let Some(rows) = &found.rows {
        return rows.iter().map(|row| curve(&row_name(row), found, row.largest, &row.probes)).collect();
    }
    let mut made = curve(&found.gpu.name, found, found.largest, &found.probes);
    made.points.extend(found.needs.iter().map(|needs| point(needs, FitOutcome::WithoutLimit)));
    vec![made]
}

/// The value, the settings or the layout of a row.
fn row_name(row: &Row) -> String {
    if let Some(layout) = &row.layout {
        return layout.iter().map(|(name, ranks)| format!("{name}={ranks}")).collect::<Vec<_>>().join(",");
    }
    match (&row.conf, row.value) {
        (Some(conf), _) => conf_text(conf).to_owned(),
        (None, Some(value)) => value.to_string(),
        (None, None) => "run".to_owned(),
    }
}

fn curve(name: &str, on: &GpuSearch, largest: Option<u64>, probes: &[Probe]) -> FitCurve {
    // If the command had no limit, the limit of a run is the GPU's memory without the bytes that the driver
    // and CUDA's libraries took in that run.
    let run = probes.iter().find(|probe| Some(probe.value) == largest).or(probes.last());
    let non_pytorch: u64 = match (on.fraction, run) {
        (None, Some(probe)) => probe.non_pytorch.iter().fold(0, |sum, part| sum.saturating_add(part.bytes)),
        _ => 0,
    };
    let outcome = |probe: &Probe| if probe.fits { FitOutcome::Fits } else { FitOutcome::RunsOut };
    FitCurve {
        name: name.to_owned(),
        limit: Bytes::new(on.limit.saturating_sub(non_pytorch)),
        gpu: on.gpu.name.clone(),
        largest,
        points: probes.iter().map(|probe| point(probe, outcome(probe))).collect(),
    }
}

fn point(probe: &Probe, outcome: FitOutcome) -> FitPoint {
    let (allocated, reserved) = (Bytes::new(probe.peak_allocated), Bytes::new(probe.peak_reserved));
    FitPoint { value: probe.value, allocated, reserved, outcome }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixture(name: &str) -> Vec<u8> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/fixtures/fit/answers/");
        std::fs::read(format!("{folder}{name}.json")).unwrap()
    }

    #[test]
    fn a_search_and_a_map_have_their_curves() {
        for (name, words) in
            [("largest", "The largest "), ("largest-fails", "none ("), ("map", "The largest ")]
        {
            let page = page_of_answer(&fixture(name)).unwrap();
            assert!(page.contains(words) && page.contains("Peak memory over "), "{name}: {page}");
        }
        let map = String::from_utf8(fixture("map-settings")).unwrap();
        let curves = curves_of(&serde_json::from_str(&map).unwrap());
        assert!(curves.len() > 1 && curves.iter().all(|curve| !curve.points.is_empty()), "{curves:?}");
    }

    #[test]
    fn what_has_no_curve_has_no_page() {
        for name in ["settings", "layouts"] {
            assert_eq!(page_of_answer(&fixture(name)), None, "{name}");
        }
        assert_eq!(page_of_answer(b"a = alloc 3 MiB"), None);
        assert_eq!(page_of_answer(b"{\"program\": 3}"), None);
    }
}
