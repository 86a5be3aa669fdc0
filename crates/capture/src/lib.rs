//! Recording a real program as a trace.
