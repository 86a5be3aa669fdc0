//! The rows of each set of tasks.

use crate::metal::task_sets::TaskJobs;

/// A run with the pages of each allocator: jobs by task.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AllocatorJobs {
    /// From the C library.
    pub malloc: Vec<TaskJobs>,
    /// Coloured, by the plan.
    pub coloured: Vec<TaskJobs>,
    /// Coloured, all in the same sets; empty where that was not run.
    pub same_sets: Vec<TaskJobs>,
}

/// A row, and the tasks that it is about, by their places.
pub(super) type RowTasks = (&'static str, &'static [usize]);

/// The rows of a set.
pub(super) struct CaseRows {
    pub(super) what: &'static str,
    /// `malloc`'s tasks miss.
    pub(super) misses: &'static [RowTasks],
    /// Those in the same sets miss, too.
    pub(super) same_sets: &'static [RowTasks],
    /// Coloured ones don't.
    pub(super) none: &'static [RowTasks],
    /// Their runs are the same.
    pub(super) same: &'static [RowTasks],
    /// T1's cycles.
    pub(super) cycles: Option<&'static str>,
    /// T1's misses by the job: a name for each curve.
    pub(super) curves: &'static [(&'static str, JobsOf)],
}

/// The rows of each of [`cases`](super::cases), in their order.
pub(super) const ROWS: [CaseRows; 6] = [
    CaseRows {
        what: "Figures 6.4 to 6.8",
        misses: &[("fig-6.4", &[0]), ("fig-6.6", &[1])],
        same_sets: &[],
        none: &[("fig-6.5", &[0]), ("fig-6.7", &[1])],
        same: &[("fig-6.5-runs", &[0]), ("fig-6.7-runs", &[1])],
        cycles: Some("fig-6.8"),
        curves: &[
            ("Figure 6.4: T1, malloc", AllocatorJobs::malloc),
            ("Figure 6.5: T1, coloured", AllocatorJobs::coloured),
        ],
    },
    CaseRows {
        what: "Table 6.1, two tasks",
        misses: &[("table-6.1-2-malloc", &[0, 1])],
        same_sets: &[],
        none: &[("table-6.1-2-coloured", &[0, 1])],
        same: &[("table-6.1-2-runs", &[0, 1])],
        cycles: None,
        curves: &[],
    },
    CaseRows {
        what: "Table 6.1, three tasks",
        misses: &[("table-6.1-3-malloc", &[0, 1, 2])],
        same_sets: &[],
        none: &[("table-6.1-3-coloured", &[0, 1, 2])],
        same: &[("table-6.1-3-runs", &[0, 1, 2])],
        cycles: None,
        curves: &[],
    },
    CaseRows {
        what: "Table 6.1, four tasks",
        misses: &[("table-6.1-4-malloc", &[0, 1, 2, 3])],
        same_sets: &[],
        none: &[("table-6.1-4-coloured", &[0, 1, 2, 3])],
        same: &[("table-6.1-4-runs", &[0, 1, 2, 3])],
        cycles: None,
        curves: &[],
    },
    CaseRows {
        what: "Figure 6.13",
        misses: &[("fig-6.13-malloc", &[0, 1])],
        same_sets: &[("fig-6.13-same-sets", &[0, 1])],
        none: &[("fig-6.13-coloured", &[0, 1])],
        same: &[("fig-6.13-runs", &[0, 1])],
        cycles: None,
        curves: &[],
    },
    CaseRows {
        what: "Figure 6.14",
        misses: &[("fig-6.14-malloc", &[0, 1])],
        same_sets: &[("fig-6.14-same-sets", &[0, 1])],
        none: &[("fig-6.14-coloured", &[0, 1])],
        same: &[("fig-6.14-runs", &[0, 1])],
        cycles: None,
        curves: &[],
    },
];

/// Jobs of a task, of one allocator.
pub(super) type JobsOf = for<'a> fn(&'a AllocatorJobs, usize) -> Option<&'a TaskJobs>;

impl AllocatorJobs {
    pub(super) fn malloc(&self, task: usize) -> Option<&TaskJobs> {
        self.malloc.get(task)
    }

    pub(super) fn coloured(&self, task: usize) -> Option<&TaskJobs> {
        self.coloured.get(task)
    }

    pub(super) fn same_sets(&self, task: usize) -> Option<&TaskJobs> {
        self.same_sets.get(task)
    }
}
