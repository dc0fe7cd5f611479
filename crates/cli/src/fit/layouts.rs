//! Which layouts of ranks fit: a run of each, in which the ranks that differ run and the others are answered for.

mod text;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::bail;
use blockyard_dry_run::{Preloaded, Program, Ranks, available_memory, run_ranks};
use blockyard_fit::{Layout, Mesh, Probe};
use blockyard_record::Bytes;
use serde_json::{Map, Value, json};

use super::json::{ended, fields, held, probe, terms, whole};
use super::kept::key;
use super::runs::{Ended, Runs, Terms, probe as probe_of};
use super::vary::Set;
use super::{Reply, each, status};
use crate::dry_run::is_interrupted;

/// As many ranks have a node of their own where nothing else is said.
const PER_NODE: u32 = 8;

/// What is known of one GPU.
struct Answer {
    terms: Terms,
    world: u32,
    names: Vec<String>,
    layouts: Vec<Layout>,
    /// By layout; none where it was not run.
    found: Vec<Option<Result<Found, String>>>,
    is_stopped: bool,
}

/// What the runs of a layout say.
#[derive(Clone, Debug)]
struct Found {
    is_fitting: bool,
    /// The ranks that ran on a GPU without an end; `value` is the rank.
    ranks: Vec<Probe>,
    /// The same under the limit, where that had to be run.
    under_limit: Option<Vec<Probe>>,
}

impl Found {
    /// The ranks of the run that decides.
    fn deciding(&self) -> &[Probe] {
        self.under_limit.as_ref().filter(|_| self.is_fitting).unwrap_or(&self.ranks)
    }

    fn most(&self, of: impl Fn(&Probe) -> Bytes) -> Bytes {
        self.deciding().iter().map(of).max().unwrap_or_default()
    }

    fn peak_reserved(&self) -> Bytes {
        self.most(|probe| probe.peak_reserved)
    }

    fn is_exact(&self) -> bool {
        self.ranks.iter().chain(self.under_limit.iter().flatten()).all(|probe| probe.is_exact)
    }
}

pub(super) fn layouts(
    runs: &Runs<'_>,
    all_terms: &[Terms],
    mesh: &Mesh,
    world: u32,
) -> anyhow::Result<Reply> {
    let per_node = match runs.options.nproc_per_node {
        Some(per_node) => u32::from(per_node),
        None if world.is_multiple_of(PER_NODE) => PER_NODE,
        None if world <= 2 * PER_NODE => world,
        None => {
            bail!("{world} ranks are no whole nodes of {PER_NODE}: --nproc-per-node says how many a node has")
        }
    };
    if !world.is_multiple_of(per_node) {
        bail!("{world} ranks are no whole nodes of {per_node}");
    }
    let all = mesh.layouts(u64::from(world));
    if all.is_empty() {
        bail!("no layout of the mesh has {world} ranks");
    }
    let of_gpu = |terms: &Terms| {
        let mut answer = Answer {
            terms: terms.clone(),
            world,
            names: mesh.names().map(str::to_owned).collect(),
            found: vec![None; all.len()],
            layouts: all.clone(),
            is_stopped: false,
        };
        let asked = Asked {
            runs,
            terms,
            world,
            per_node,
            preloaded: Mutex::new(None),
            host_peak: AtomicU64::new(0),
            number: AtomicUsize::new(0),
        };
        asked.fill(&mut answer);
        answer
    };
    let answers = each(all_terms, of_gpu, |answer: &Answer| answer.is_stopped);
    let mut out = String::new();
    for answer in &answers {
        text::write(&mut out, answer, runs.options.quiet)?;
    }
    let about = fields(json!({
        "question": "layouts",
        "others": answers.iter().skip(1).map(Answer::json).collect::<Vec<_>>(),
    }));
    let first = answers.first().map(Answer::json).unwrap_or_default();
    let is_found = answers.iter().all(|answer| answer.best().is_some());
    let stopped = answers.iter().any(|answer| answer.is_stopped).then_some(Ended::Stopped);
    let has_failed = answers.iter().flat_map(|answer| &answer.found).flatten().any(Result::is_err);
    let ended = stopped.or_else(|| (has_failed && !is_found).then(|| Ended::Failed(String::new())));
    Ok(Reply { text: out, json: whole(runs, [first, about]), status: status(ended.as_ref(), is_found) })
}

/// The runs of one GPU's layouts.
struct Asked<'a> {
    runs: &'a Runs<'a>,
    terms: &'a Terms,
    world: u32,
    per_node: u32,
    /// The process that has loaded the modules, once one is needed.
    preloaded: Mutex<Option<Preloaded>>,
    /// Most bytes of the host that the processes of one layout had.
    host_peak: AtomicU64,
    /// Runs so far, for the names of their files.
    number: AtomicUsize,
}

impl Asked<'_> {
    fn fill(&self, answer: &mut Answer) {
        let layouts = answer.layouts.clone();
        let next = AtomicUsize::new(0);
        let found = Mutex::new(&mut answer.found);
        let step = || -> bool {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(layout) = layouts.get(at).filter(|_| !is_interrupted()) else { return false };
            let result = match self.ask(layout) {
                Ok(found) => Ok(found),
                Err(Ended::Failed(error)) => Err(error),
                Err(Ended::Stopped) => return false,
            };
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(row) = found.get_mut(at) {
                *row = Some(result);
            }
            true
        };
        // What one takes of the host is known after the first.
        while self.host_peak.load(Ordering::Relaxed) == 0 && step() {}
        std::thread::scope(|scope| {
            for _ in 1..self.at_once() {
                scope.spawn(|| while step() {});
            }
            while step() {}
        });
        answer.is_stopped = is_interrupted();
    }

    /// How many layouts run side by side: as many as are asked for and as the host's memory holds.
    fn at_once(&self) -> u64 {
        let wanted = u64::from(self.runs.options.at_once);
        let one = self.host_peak.load(Ordering::Relaxed);
        match available_memory().and_then(|available| available.checked_div(one)) {
            Some(most) => wanted.min(most).max(1),
            None => wanted,
        }
    }

    fn ask(&self, layout: &Layout) -> Result<Found, Ended> {
        let mut terms = self.terms.clone();
        let set = |(name, value): (&str, u64)| Set { name: name.to_owned(), is_variable: false, value };
        terms.sets.extend(layout.sizes().map(set));
        let most = terms.most();
        let ranks = self.of_terms(&terms.without_end(), layout)?;
        let all = |is: &dyn Fn(&Probe) -> bool| ranks.iter().all(is);
        if all(&|probe| probe.is_fitting && probe.peak_reserved <= most) {
            return Ok(Found { is_fitting: true, ranks, under_limit: None });
        }
        if !all(&|probe| probe.is_fitting && probe.peak_allocated <= most) {
            return Ok(Found { is_fitting: false, ranks, under_limit: None });
        }
        // What is allocated would fit: the allocator may release cached segments.
        let under_limit = self.of_terms(&terms, layout)?;
        let is_fitting = under_limit.iter().all(|probe| probe.is_fitting);
        Ok(Found { is_fitting, ranks, under_limit: Some(under_limit) })
    }

    /// What the ranks of a layout say, from before where that is known.
    fn of_terms(&self, terms: &Terms, layout: &Layout) -> Result<Vec<Probe>, Ended> {
        let asked = layout.distinct_ranks(self.world);
        let key = key(self.runs, terms, &(self.world, self.per_node, &asked, &self.runs.options.preload));
        let known = asked.iter().map(|rank| self.runs.kept.find(key, u64::from(*rank)));
        if let Some(known) = known.collect::<Option<Vec<Probe>>>() {
            self.runs.known.fetch_add(1, Ordering::Relaxed);
            return Ok(known);
        }
        if is_interrupted() {
            return Err(Ended::Stopped);
        }
        self.runs.say(&format!("{layout}, rank {}", numbers(&asked)), terms);
        let failed = |error: String| Ended::Failed(error);
        let ranks = Ranks::new(self.world / self.per_node, self.per_node, &asked)
            .map_err(|error| failed(error.to_string()))?;
        let program = self.runs.program(terms).map_err(|error| failed(format!("{error:#}")))?;
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let output = |rank: u32| self.runs.folder.join(format!("output-{number}-{rank}"));
        let devices = program.devices.max(self.per_node);
        let program = Program { devices, ..program };
        let preloaded = self.preloaded(&program, &ranks)?;
        let of_rank = |rank: u32| Program {
            preloaded: preloaded.clone(),
            output: Some(output(rank)),
            ..program.clone()
        };
        let report = run_ranks(&ranks, None, of_rank, &self.runs.torch, &self.runs.prepared, is_interrupted)
            .map_err(|error| failed(error.to_string()))?;
        if is_interrupted() {
            return Err(Ended::Stopped);
        }
        let host: u64 = report.ranks.iter().map(|rank| rank.report.host_peak.get()).sum();
        self.host_peak.fetch_max(host, Ordering::Relaxed);
        let mut probes = Vec::new();
        let mut error = None;
        let mut files = Vec::new();
        for rank in &report.ranks {
            match probe_of(&rank.report, &output(rank.rank)) {
                Ok(found) => probes.push(Probe { value: u64::from(rank.rank), ..found }),
                // That one rank was ended says nothing where another one failed.
                Err(what) if report.failed.is_none_or(|failed| failed == rank.rank) => {
                    error = Some(what);
                }
                Err(_) => {}
            }
            files.extend(rank.report.files.iter().cloned());
            let _ = std::fs::remove_file(output(rank.rank));
        }
        if let Some(error) = error {
            return Err(Ended::Failed(error));
        }
        self.runs.made.fetch_add(1, Ordering::Relaxed);
        files.sort();
        files.dedup();
        for probe in &probes {
            self.runs.kept.add(key, probe, &files).map_err(|error| failed(format!("{error:#}")))?;
        }
        Ok(probes)
    }

    /// The process that has loaded the modules; none where no modules are named.
    fn preloaded(&self, program: &Program, ranks: &Ranks) -> Result<Option<Preloaded>, Ended> {
        let modules = &self.runs.options.preload;
        if modules.is_empty() {
            return Ok(None);
        }
        let mut preloaded = self.preloaded.lock().unwrap_or_else(PoisonError::into_inner);
        if preloaded.is_none() {
            let mut program = program.clone();
            // How many threads there are is read where modules are loaded.
            program.environment.extend(ranks.environment(0, 0));
            let started = Preloaded::load(&program, modules, &self.runs.torch, &self.runs.prepared);
            *preloaded = Some(started.map_err(|error| Ended::Failed(error.to_string()))?);
        }
        Ok(preloaded.clone())
    }
}

fn numbers(ranks: &[u32]) -> String {
    let ranks: Vec<String> = ranks.iter().map(u32::to_string).collect();
    ranks.join(" and ")
}

impl Answer {
    /// Layouts that ran to an answer.
    fn answered(&self) -> impl Iterator<Item = (&Layout, &Found)> {
        let rows = self.layouts.iter().zip(&self.found);
        rows.filter_map(|(layout, found)| Some((layout, found.as_ref()?.as_ref().ok()?)))
    }

    /// The layout that fits with the least peak reserved of all ranks that ran; the first of several.
    fn best(&self) -> Option<(&Layout, &Found)> {
        self.answered().filter(|(_, found)| found.is_fitting).min_by_key(|(_, found)| found.peak_reserved())
    }

    fn json(&self) -> Map<String, Value> {
        let mut all = terms(&self.terms);
        let (_, stopped) = ended(self.is_stopped.then_some(&(0, Ended::Stopped)));
        all.extend(fields(json!({
            "ranks": self.world,
            "mesh": self.names,
            "best": self.best().map(|(layout, _)| sizes(layout)),
            "layouts": self.layouts.iter().zip(&self.found).map(|(layout, found)| row(layout, found.as_ref())).collect::<Vec<_>>(),
            "error": stopped,
        })));
        all
    }
}

fn sizes(layout: &Layout) -> Value {
    let sizes: Map<String, Value> =
        layout.sizes().map(|(name, size)| (name.to_owned(), json!(size))).collect();
    Value::Object(sizes)
}

fn row(layout: &Layout, found: Option<&Result<Found, String>>) -> Value {
    let answered = found.and_then(|found| found.as_ref().ok());
    let ranks = |probes: &[Probe]| probes.iter().map(of_rank).collect::<Vec<_>>();
    json!({
        "layout": sizes(layout),
        "fits": answered.map(|found| found.is_fitting),
        "peak_allocated": answered.map(|found| found.most(|probe| probe.peak_allocated).get()),
        "peak_reserved": answered.map(|found| found.peak_reserved().get()),
        "exact": answered.map(Found::is_exact),
        "ranks": answered.map(|found| ranks(&found.ranks)),
        "under_limit": answered.and_then(|found| found.under_limit.as_deref()).map(ranks),
        "error": found.and_then(|found| found.as_ref().err()),
    })
}

fn of_rank(rank: &Probe) -> Value {
    let mut all = fields(probe(rank));
    all.remove("value");
    all.insert("rank".to_owned(), json!(rank.value));
    all.insert("holders".to_owned(), json!(held(&rank.holders)));
    Value::Object(all)
}
