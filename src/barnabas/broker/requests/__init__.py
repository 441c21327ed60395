"""From a frame to an answer: routes, dispatch, and what a handler is given."""
