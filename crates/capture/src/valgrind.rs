use crate::{CaptureError, Recording, Request};

pub(crate) fn start(_request: &Request) -> Result<Recording, CaptureError> {
    Err(CaptureError::Backend { backend: "valgrind", reason: "is not in this build".into() })
}

pub(crate) fn missing() -> Option<String> {
    Some("Valgrind is not in this build".into())
}
