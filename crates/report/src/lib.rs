//! Tables, plots, HTML, JSON.
