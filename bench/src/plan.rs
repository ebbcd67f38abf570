//! How much of what is measured.

use crate::{
    measurement::System,
    workload::{Backend, Steps, Workload},
};

/// What is to be measured.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) workloads: Vec<Workload>,
    pub(crate) systems: Vec<System>,
    pub(crate) rounds: usize,
    /// How many runs W1 has.
    pub(crate) runs: usize,
    /// How many it has for LangGraph, which takes longer for each.
    pub(crate) peer_runs: usize,
    /// How many it has for Restate, for the same reason.
    pub(crate) restate_runs: usize,
    pub(crate) concurrencies: Vec<usize>,
    /// How many clients W1 has on PostgreSQL.
    pub(crate) postgres_concurrencies: Vec<usize>,
    /// How many seconds pgbench is given.
    pub(crate) pgbench_seconds: usize,
    /// What W3 is.
    pub(crate) steps: Steps,
    /// How many are parked in W2, the fewest first; in W4 as many as the last says.
    pub(crate) parked: Vec<usize>,
    /// How many a peer is made to park at most.
    pub(crate) peer_parked: usize,
    /// How many resumes W2 takes the times of.
    pub(crate) resumes: usize,
    /// How many it takes for a peer.
    pub(crate) peer_resumes: usize,
    /// After how many resumes the process of W4 is killed.
    pub(crate) killed_after: usize,
}

impl Plan {
    /// What counts.
    pub(crate) fn full() -> Self {
        Self {
            workloads: Workload::ALL.to_vec(),
            systems: System::ALL.to_vec(),
            rounds: 5,
            runs: 2_000,
            peer_runs: 200,
            restate_runs: 500,
            concurrencies: vec![1, 32, 128],
            postgres_concurrencies: vec![1, 32, 64, 128],
            pgbench_seconds: 3,
            steps: Steps {
                steps: 2_000,
                characters: 500,
            },
            parked: vec![100, 10_000, 100_000],
            peer_parked: 10_000,
            resumes: 1_000,
            peer_resumes: 500,
            killed_after: 200,
        }
    }

    /// Just enough to see that everything works.
    pub(crate) fn quick() -> Self {
        Self {
            rounds: 2,
            runs: 40,
            peer_runs: 10,
            restate_runs: 20,
            concurrencies: vec![1, 8],
            postgres_concurrencies: vec![1, 8],
            pgbench_seconds: 1,
            steps: Steps {
                steps: 40,
                characters: 500,
            },
            parked: vec![60, 300],
            peer_parked: 100,
            resumes: 40,
            peer_resumes: 10,
            killed_after: 10,
            ..Self::full()
        }
    }

    /// Whether this workload is to be measured.
    pub(crate) fn has(&self, workload: Workload) -> bool {
        self.workloads.contains(&workload)
    }

    /// Who has a part in a workload, in the order in which they are measured.
    pub(crate) fn systems(&self, workload: Workload) -> Vec<System> {
        let parts: &[System] = match workload {
            Workload::W1 | Workload::W3 => &[System::Holdpoint, System::Ceiling, System::Langgraph],
            Workload::W1Pg => &[System::Holdpoint, System::Pgbench, System::Langgraph],
            // The ceiling writes what it is told, and has nothing to list or to resume.
            Workload::W2 | Workload::W2Pg | Workload::W3Pg | Workload::W4 | Workload::W4Pg => {
                &[System::Holdpoint, System::Langgraph]
            }
            Workload::W1Http => &[System::Holdpoint, System::Restate],
            Workload::W2Http => &[System::Holdpoint],
        };
        let planned = self.systems.iter().copied();
        planned.filter(|system| parts.contains(system)).collect()
    }

    /// Of the workloads on a backend that are to be measured, those that are told.
    pub(crate) fn on(&self, backend: Backend, all: &[Workload]) -> Vec<Workload> {
        let all = all.iter().copied();
        all.filter(|workload| workload.backend() == backend && self.has(*workload))
            .collect()
    }

    /// Whether anything is measured on PostgreSQL.
    pub(crate) fn needs_postgres(&self) -> bool {
        let planned = self.on(Backend::Postgres, &Workload::ALL);
        planned
            .into_iter()
            .any(|workload| !self.systems(workload).is_empty())
    }

    /// How many clients W1 has.
    pub(crate) fn concurrencies(&self, backend: Backend) -> Vec<usize> {
        match backend {
            Backend::Sqlite => self.concurrencies.clone(),
            Backend::Postgres => self.postgres_concurrencies.clone(),
        }
    }

    /// Whether a system has a part in any of what is planned.
    pub(crate) fn needs(&self, system: System) -> bool {
        let mut workloads = self.workloads.iter();
        workloads.any(|workload| self.systems(*workload).contains(&system))
    }

    /// How many are parked for this system, the fewest first.
    pub(crate) fn parked(&self, system: System) -> Vec<usize> {
        let most = match system {
            System::Holdpoint => usize::MAX,
            System::Langgraph | System::Restate => self.peer_parked,
            System::Ceiling | System::Pgbench => 0,
        };
        let within = self.parked.iter().filter(|parked| **parked <= most);
        within.copied().collect()
    }

    /// How many resumes are measured for this system.
    pub(crate) const fn resumes(&self, system: System) -> usize {
        match system {
            System::Holdpoint | System::Ceiling | System::Pgbench => self.resumes,
            System::Langgraph | System::Restate => self.peer_resumes,
        }
    }
}
