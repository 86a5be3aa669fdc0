//! Chains of loads through the memory areas of this machine: one area at a time, given back before others need the
//! memory.

use crate::metal::area::{Backing, Own, Shared, Sparse, Zeros, SHARED_SHIFT};
use crate::metal::{clock, cycle_timing, LineChain, MemoryArea, MetalError, SPARSE_SHIFT};

/// At most one area at a time.
#[derive(Debug)]
pub(crate) struct HostAreas {
    max_bytes: u64,
    own: Option<Own>,
    shared: Option<Shared>,
    sparse: Option<Sparse>,
}

impl HostAreas {
    /// None yet. An area and its tables take at most `max_bytes`.
    pub(crate) fn new(max_bytes: u64) -> Self {
        Self { max_bytes, own: None, shared: None, sparse: None }
    }

    /// Bytes that an area of this kind may have.
    pub(crate) fn bytes(&mut self, area: MemoryArea) -> u64 {
        match area {
            MemoryArea::Own { .. } | MemoryArea::Contiguous { .. } => self.max_bytes,
            MemoryArea::Gigantic => 0, // not of this memory
            MemoryArea::Shared => self.shared().map_or(0, |shared| shared.bytes()),
            MemoryArea::Sparse => self.sparse(&[]).map_or(0, |sparse| sparse.bytes()),
        }
    }

    /// Gives the memory back.
    pub(crate) fn give_back(&mut self) {
        (self.own, self.shared, self.sparse) = (None, None, None);
    }

    fn own(&mut self, bytes: u64, backing: Backing) -> Result<&mut Own, MetalError> {
        (self.shared, self.sparse) = (None, None);
        if bytes > self.max_bytes {
            return Err(MetalError::Cannot(format!("an area of {bytes} bytes; at most {}", self.max_bytes)));
        }
        if !self.own.as_ref().is_some_and(|own| own.serves(bytes, backing)) {
            self.own = None; // gone before the next is made
        }
        match &mut self.own {
            Some(own) => Ok(own),
            none => Ok(none.insert(Own::new(bytes, backing)?)),
        }
    }

    fn shared(&mut self) -> Result<&mut Shared, MetalError> {
        (self.own, self.sparse) = (None, None);
        match &mut self.shared {
            Some(shared) => Ok(shared),
            none => Ok(none.insert(Shared::new(self.max_bytes)?)),
        }
    }

    /// One in which these places may be read: the tables of those read before go if they take too much memory.
    fn sparse(&mut self, offsets: &[u64]) -> Result<&mut Sparse, MetalError> {
        (self.own, self.shared) = (None, None);
        let most = self.max_bytes;
        if self.sparse.as_mut().is_some_and(|sparse| sparse.table_bytes_with(offsets) > most) {
            self.sparse = None;
        }
        match &mut self.sparse {
            Some(sparse) => Ok(sparse),
            none => {
                let sparse = none.insert(Sparse::new()?);
                match sparse.table_bytes_with(offsets) {
                    bytes if bytes <= most => Ok(sparse),
                    bytes => Err(MetalError::Cannot(format!("{bytes} bytes of page tables; at most {most}"))),
                }
            }
        }
    }

    /// Core cycles a step, so many samples.
    pub(crate) fn walk(&mut self, chain: &LineChain<'_>, samples: usize) -> Result<Vec<f64>, MetalError> {
        if chain.offsets.is_empty() {
            return Err(MetalError::Cannot("a chain without steps".into()));
        }
        let (warm, timed) = (chain.warm, chain.timed.max(1));
        let own = match chain.area {
            MemoryArea::Own { bytes, huge } => Some((bytes, if huge { Backing::Huge } else { Backing::Small })),
            MemoryArea::Contiguous { bytes, split } => {
                Some((bytes, if split { Backing::Split } else { Backing::SurelyHuge }))
            }
            MemoryArea::Gigantic => return Err(MetalError::Cannot("pages of 1 GiB are no area of this memory".into())),
            MemoryArea::Shared | MemoryArea::Sparse => None,
        };
        match own {
            Some((bytes, backing)) => {
                let at = self.own(bytes, backing)?.link(chain.offsets)?;
                // SAFETY: `link` gave a circular chain through mapped memory that nobody unmaps meanwhile.
                Ok(unsafe { circle(at, chain, samples) })
            }
            None if chain.area == MemoryArea::Sparse => {
                Ok(times::<SPARSE_SHIFT>(self.sparse(chain.offsets)?, chain.offsets, warm, timed, samples)?)
            }
            None => Ok(times::<SHARED_SHIFT>(self.shared()?, chain.offsets, warm, timed, samples)?),
        }
    }
}

/// Core cycles a step of a chain that is linked from this address on, so many samples.
///
/// # Safety
/// It is circular, and all of it is mapped.
pub(crate) unsafe fn circle(mut at: u64, chain: &LineChain<'_>, samples: usize) -> Vec<f64> {
    let (mut warm, timed) = (chain.warm, chain.timed.max(1));
    let mut sample = || {
        // SAFETY: the caller's.
        let ticks = unsafe { clock::walk(&mut at, warm, timed) };
        warm = 1;
        ticks
    };
    (0..samples).map(|_| cycle_timing::in_cycles(&mut sample) / timed as f64).collect()
}

/// Core cycles a step through addresses that share a frame, so many samples.
fn times<const SHIFT: u32>(
    zeros: &Zeros<SHIFT>,
    offsets: &[u64],
    mut warm: u64,
    timed: u64,
    samples: usize,
) -> Result<Vec<f64>, MetalError> {
    let (base, units) = zeros.places(offsets)?;
    let mut at = 0;
    let mut sample = || {
        // SAFETY: `places` gave units of memory that was never written, mapped while `zeros` lives.
        let ticks = unsafe { cycle_timing::walk_list::<SHIFT>(base, &units, &mut at, warm, timed) };
        warm = 0;
        ticks
    };
    Ok((0..samples).map(|_| cycle_timing::in_cycles(&mut sample) / timed as f64).collect())
}
