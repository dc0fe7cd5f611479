//! Recordings of PyTorch's own allocator, replayed with every segment real.

use std::ops::ControlFlow;

use blockyard_device::{DeviceMemory, MirroredDevice, RecordedDevice};
use blockyard_device_cuda::CudaDevice;
use blockyard_pytorch::RecordedRun;
use blockyard_pytorch::trace::requests;
use blockyard_record::{Bytes, DeviceAddr, Recording, TraceAction, TraceEntry};
use blockyard_replay::{RunSettings, run_on, verify_on};
use blockyard_rules::AllocatorConfig;
use blockyard_tests::cuda::on_cuda;
use blockyard_tests::fixtures::{DEFAULT, EXPANDABLE, POOLS, SETTINGS, recorded_run};

/// Checks that under the recorded addresses everything is as recorded: addresses, statistics after each
/// operation, trace, blocks.
fn check_mirrored(names: &[String]) {
    on_cuda(|mut device| {
        let total = device.total_memory();
        for name in names {
            let run = recorded_run(name);
            // Recorded failures depend on the total memory, so the device needs enough.
            assert!(total >= Bytes::gib(8), "{total} of device memory are too few for the recordings");
            let verified = verify_on(&run, |shown| MirroredDevice::new(shown, device), &mut |_| {
                ControlFlow::Continue(())
            })
            .expect("the recording can be replayed");
            let comparison = verified.comparison;
            println!("{name}: {}; {:?}", comparison.headline(), comparison.counts);
            assert!(comparison.is_identical(), "{name}: {:?}", comparison.first_difference);
            device = CudaDevice::open(0).unwrap();
        }
    });
}

#[test]
fn default_settings_are_identical() {
    check_mirrored(&DEFAULT.iter().map(|profile| format!("synthetic/default-{profile}")).collect::<Vec<_>>());
}

#[test]
fn expandable_segments_are_identical() {
    check_mirrored(
        &EXPANDABLE.iter().map(|profile| format!("synthetic/expand-{profile}")).collect::<Vec<_>>(),
    );
}

#[test]
fn other_settings_and_pools_are_identical() {
    check_mirrored(
        &SETTINGS.iter().chain(&POOLS).map(|name| format!("synthetic/{name}")).collect::<Vec<_>>(),
    );
}

/// Runs the recorded requests where the driver places the segments.
fn run_where_the_driver_likes(run: &RecordedRun, device: CudaDevice) -> Recording {
    let inferred = requests(run).unwrap();
    let settings = settings(run, device.total_memory());
    run_on(device, &inferred.workload, &settings, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn settings(run: &RecordedRun, capacity: Bytes) -> RunSettings {
    RunSettings {
        title: run.meta.name.clone(),
        config: AllocatorConfig::parse(&run.meta.conf, run.meta.release()).unwrap(),
        capacity,
    }
}

/// The trace without the free bytes that the driver reported when memory ran out, since a context and other
/// programs take some memory.
fn without_device_free(recording: &Recording) -> Vec<TraceEntry> {
    let mut trace = recording.trace().unwrap();
    for entry in trace.iter_mut().filter(|entry| entry.action == TraceAction::OutOfMemory) {
        entry.addr = 0;
    }
    trace
}

/// Best fit decides ties by address, so a driver that places segments in another order leads to other splits.
/// Everything else depends on the allocator alone: the same addresses on a device without hardware lead to
/// the same run.
#[test]
fn only_the_addresses_are_the_drivers() {
    on_cuda(|device| {
        let total = device.total_memory();
        let mut device = Some(device);
        for profile in DEFAULT {
            let name = format!("synthetic/default-{profile}");
            let run = recorded_run(&name);
            let device = device.take().unwrap_or_else(|| CudaDevice::open(0).unwrap());
            let real = run_where_the_driver_likes(&run, device);
            let segments: Vec<(DeviceAddr, Bytes)> = real
                .trace()
                .unwrap()
                .iter()
                .filter(|entry| entry.action == TraceAction::SegmentAlloc)
                .map(|entry| (DeviceAddr::new(entry.addr), entry.size))
                .collect();
            let count = segments.len();
            let shown = RecordedDevice::new(total, segments, [], []);
            let inferred = requests(&run).unwrap();
            let again =
                run_on(shown, &inferred.workload, &settings(&run, total), &mut |_| ControlFlow::Continue(()))
                    .unwrap();
            let (real, again) = (without_device_free(&real), without_device_free(&again));
            assert!(count > 0 && real == again, "{name}");
            println!("{name}: {count} segments, {} trace entries identical", real.len());
        }
    });
}

/// Expandable segments are one range for each stream and pool: no ties between segments exist, so any
/// addresses of the driver give the recorded statistics.
#[test]
fn expandable_segments_give_the_recorded_statistics_where_the_driver_likes() {
    on_cuda(|device| {
        let mut device = Some(device);
        for profile in EXPANDABLE {
            let name = format!("synthetic/expand-{profile}");
            let run = recorded_run(&name);
            let device = device.take().unwrap_or_else(|| CudaDevice::open(0).unwrap());
            let comparison =
                verify_on(&run, |_| device, &mut |_| ControlFlow::Continue(())).unwrap().comparison;
            let statistics = comparison.counts.iter().find(|count| count.kind == "statistics").unwrap();
            println!("{name}: {} of {} statistics identical", statistics.identical, statistics.total);
            assert!(statistics.total > 1000 && statistics.identical == statistics.total, "{name}");
        }
    });
}
