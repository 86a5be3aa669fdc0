use crate::{CaptureError, Recording, Request};

pub(crate) fn start(_request: &Request) -> Result<Recording, CaptureError> {
    Err(CaptureError::Backend { backend: "sample", reason: "is not in this build".into() })
}
