//! The environment variables that PyTorch reads, and their order.

use super::AllocatorConfig;
use super::ConfigError;
use super::parse::backend_at_load;
use super::single;
use crate::Release;

const CUDA_ALLOC_CONF: &str = "PYTORCH_CUDA_ALLOC_CONF";
const HIP_ALLOC_CONF: &str = "PYTORCH_HIP_ALLOC_CONF";
const ALLOC_CONF: &str = "PYTORCH_ALLOC_CONF";
const NO_CUDA_MEMORY_CACHING: &str = "PYTORCH_NO_CUDA_MEMORY_CACHING";
const NO_HIP_MEMORY_CACHING: &str = "PYTORCH_NO_HIP_MEMORY_CACHING";

/// The values of the environment variables that PyTorch's allocator reads, as far as they are set.
///
/// `PYTORCH_CUDA_ALLOC_CONF` has priority over `PYTORCH_ALLOC_CONF`: only the first variable that is set
/// counts. A build for CUDA reads `PYTORCH_HIP_ALLOC_CONF` too, between the two, but only for the settings
/// that all kinds of devices have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// `PYTORCH_CUDA_ALLOC_CONF`.
    pub cuda_alloc_conf: Option<String>,
    /// `PYTORCH_HIP_ALLOC_CONF`.
    pub hip_alloc_conf: Option<String>,
    /// `PYTORCH_ALLOC_CONF`.
    pub alloc_conf: Option<String>,
    /// `PYTORCH_NO_CUDA_MEMORY_CACHING`: 1 switches caching off.
    pub no_cuda_memory_caching: Option<String>,
    /// `PYTORCH_NO_HIP_MEMORY_CACHING`: 1 switches caching off too.
    pub no_hip_memory_caching: Option<String>,
}

/// How PyTorch fails when the environment has an error, with the error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    /// The process ends while it imports PyTorch, which looks for the backend then.
    #[error("PyTorch aborts at import: {0}")]
    AtImport(#[source] ConfigError),
    /// The first use of CUDA fails.
    #[error(transparent)]
    AtFirstUse(ConfigError),
}

impl Environment {
    /// Reads each variable by calling `variable` with its name.
    #[must_use]
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        Self {
            cuda_alloc_conf: variable(CUDA_ALLOC_CONF),
            hip_alloc_conf: variable(HIP_ALLOC_CONF),
            alloc_conf: variable(ALLOC_CONF),
            no_cuda_memory_caching: variable(NO_CUDA_MEMORY_CACHING),
            no_hip_memory_caching: variable(NO_HIP_MEMORY_CACHING),
        }
    }

    /// Whether any variable is set that holds settings.
    #[must_use]
    pub fn has_settings(&self) -> bool {
        self.generic_text().is_some()
    }

    /// The name of the variable whose settings count, if any is set.
    #[must_use]
    pub fn settings_variable(&self) -> Option<&'static str> {
        let variables = [
            (CUDA_ALLOC_CONF, &self.cuda_alloc_conf),
            (HIP_ALLOC_CONF, &self.hip_alloc_conf),
            (ALLOC_CONF, &self.alloc_conf),
        ];
        variables.into_iter().find(|(_, text)| text.is_some()).map(|(name, _)| name)
    }

    /// The settings that PyTorch of the newest release would work with; see [`Environment::config_under`].
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] says when PyTorch reports the error, and the text.
    pub fn config(&self) -> Result<AllocatorConfig, EnvironmentError> {
        self.config_under(Release::default())
    }

    /// The settings that PyTorch of this release would work with. Warnings are in
    /// [`AllocatorConfig::warnings`].
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] says when PyTorch reports the error, and the text.
    pub fn config_under(&self, release: Release) -> Result<AllocatorConfig, EnvironmentError> {
        let mut config = AllocatorConfig::of(release);
        self.read_caching(&mut config);
        if release.has_one_parser() {
            if let Some(text) = self.cuda_alloc_conf.as_deref() {
                config.backend = single::backend_at_load(text);
                config.apply_single(text).map_err(EnvironmentError::AtFirstUse)?;
            }
            return Ok(config);
        }
        let cuda = self.cuda_text();
        if let Some(text) = cuda {
            config.backend = backend_at_load(text).map_err(EnvironmentError::AtImport)?;
        }
        // The parser for CUDA reads its settings first.
        if let Some(text) = cuda {
            config.apply_cuda(text).map_err(EnvironmentError::AtFirstUse)?;
        }
        if let Some(text) = self.generic_text() {
            config.apply_generic(text).map_err(EnvironmentError::AtFirstUse)?;
        }
        config.leave_out_foreign_settings();
        Ok(config)
    }

    fn cuda_text(&self) -> Option<&str> {
        self.cuda_alloc_conf.as_deref().or(self.alloc_conf.as_deref())
    }

    fn generic_text(&self) -> Option<&str> {
        let first = self.cuda_alloc_conf.as_deref().or(self.hip_alloc_conf.as_deref());
        first.or(self.alloc_conf.as_deref())
    }

    fn read_caching(&self, config: &mut AllocatorConfig) {
        let variables = [
            (NO_CUDA_MEMORY_CACHING, &self.no_cuda_memory_caching),
            (NO_HIP_MEMORY_CACHING, &self.no_hip_memory_caching),
        ];
        for (name, value) in variables {
            match value.as_deref() {
                Some("1") => config.is_caching = false,
                Some("0") | None => {}
                Some(other) => config.warnings.push(format!(
                    "Ignoring invalid value for boolean flag {name}: {other}valid values are 0 or 1."
                )),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Backend, Bytes};

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        Environment::read(|name| {
            pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn config(pairs: &[(&str, &str)]) -> AllocatorConfig {
        environment(pairs).config().unwrap()
    }

    const CUDA: &str = "PYTORCH_CUDA_ALLOC_CONF";
    const HIP: &str = "PYTORCH_HIP_ALLOC_CONF";
    const GENERIC: &str = "PYTORCH_ALLOC_CONF";

    #[test]
    fn the_variable_for_cuda_comes_first_and_nothing_is_merged() {
        let config = config(&[
            (GENERIC, "max_split_size_mb:32,expandable_segments:True"),
            (CUDA, "max_split_size_mb:64"),
        ]);
        assert_eq!(config.max_split_size(), Bytes::mib(64));
        assert!(!config.expandable_segments());
        assert_eq!(config.text(), "max_split_size_mb:64");
    }

    #[test]
    fn the_generic_variable_counts_alone_and_brings_all_settings() {
        let config =
            config(&[(GENERIC, "max_split_size_mb:32,backend:native,per_process_memory_fraction:0.5")]);
        assert_eq!(config.max_split_size(), Bytes::mib(32));
        assert!((config.per_process_memory_fraction() - 0.5).abs() < f64::EPSILON);
    }

    #[test]
    fn the_variable_for_hip_brings_what_all_devices_have_and_hides_the_generic_one_there() {
        let config = config(&[
            (HIP, "max_split_size_mb:40,per_process_memory_fraction:0.25"),
            (GENERIC, "max_split_size_mb:32,expandable_segments:True,per_process_memory_fraction:0.5"),
        ]);
        assert_eq!(config.max_split_size(), Bytes::mib(40));
        assert!(!config.expandable_segments());
        assert!((config.per_process_memory_fraction() - 0.5).abs() < f64::EPSILON);
        assert!(environment(&[(HIP, "")]).has_settings());
        assert!(!environment(&[]).has_settings());
    }

    #[test]
    fn an_empty_variable_is_set() {
        assert_eq!(config(&[(CUDA, ""), (GENERIC, "max_split_size_mb:32")]), AllocatorConfig::default());
        assert_eq!(config(&[]), AllocatorConfig::default());
    }

    #[test]
    fn the_backend_is_found_while_the_library_loads_and_a_malformed_text_ends_that() {
        assert_eq!(config(&[(CUDA, "backend:cudaMallocAsync")]).backend(), Backend::CudaMallocAsync);
        assert_eq!(
            config(&[(CUDA, "roundup_power2_divisions:[1:2,>:4],backend:cudaMallocAsync")]).backend(),
            Backend::CudaMallocAsync
        );
        let failed = |text: &str| environment(&[(CUDA, text)]).config().unwrap_err();
        for text in ["max_split_size_mb", "max_split_size_mb:", "roundup_power2_divisions:[1:2", "backend"] {
            assert!(matches!(failed(text), EnvironmentError::AtImport(_)), "{text}");
        }
        assert_eq!(
            failed("foo:[1").to_string(),
            "PyTorch aborts at import: Expected closing bracket ']' in ConfigTokenizer but reached end of config"
        );
        // An unknown name selects the native backend, until the settings are read.
        assert_eq!(failed("backend:foo"), EnvironmentError::AtFirstUse(ConfigError::Backend));
        assert_eq!(
            failed("backend:native,backend:cudaMallocAsync").to_string(),
            "Allocator backend parsed at runtime != allocator backend parsed at load time, cudaMallocAsync != native"
        );
    }

    #[test]
    fn a_key_that_nobody_knows_is_met_by_the_parser_that_reads_first() {
        let failed = |variable| environment(&[(variable, "foo:1")]).config().unwrap_err().to_string();
        assert_eq!(failed(CUDA), "Unrecognized key 'foo' in CUDA allocator config.");
        assert_eq!(failed(GENERIC), "Unrecognized key 'foo' in CUDA allocator config.");
        assert_eq!(failed(HIP), "Unrecognized key 'foo' in Accelerator allocator config.");
    }

    #[test]
    fn caching_is_switched_off_by_1_alone() {
        let off = |value| config(&[("PYTORCH_NO_CUDA_MEMORY_CACHING", value)]);
        assert!(!off("1").is_caching());
        assert!(!config(&[("PYTORCH_NO_HIP_MEMORY_CACHING", "1")]).is_caching());
        assert!(off("0").is_caching());
        let odd = off("yes");
        assert!(odd.is_caching());
        assert_eq!(
            odd.warnings(),
            [
                "Ignoring invalid value for boolean flag PYTORCH_NO_CUDA_MEMORY_CACHING: yesvalid values are 0 or 1."
            ]
        );
    }

    #[test]
    fn the_backend_of_the_driver_warns_of_native_settings_on_cudas_side_only() {
        let warnings = |text: &str| config(&[(CUDA, text)]).warnings().len();
        assert_eq!(warnings("backend:cudaMallocAsync"), 0);
        assert_eq!(warnings("backend:cudaMallocAsync,max_split_size_mb:64"), 0);
        for option in [
            "release_lock_on_cudamalloc:True",
            "pinned_use_cuda_host_register:True",
            "pinned_num_register_threads:2",
            "pinned_reserve_segment_size_mb:1",
            "graph_capture_record_stream_reuse:True",
            "per_process_memory_fraction:0.5",
        ] {
            assert_eq!(warnings(&format!("{option},backend:cudaMallocAsync")), 1, "{option}");
            assert_eq!(warnings(option), 0, "{option}");
        }
        assert_eq!(
            config(&[(CUDA, "backend:cudaMallocAsync,per_process_memory_fraction:0.5")]).warnings(),
            [
                "backend:cudaMallocAsync ignores max_split_size_mb,roundup_power2_divisions, and garbage_collect_threshold."
            ]
        );
    }
}
