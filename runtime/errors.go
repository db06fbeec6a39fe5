package runtime

import (
	"errors"
	"fmt"
)

// Errors of a Runtime that callers compare with errors.Is; other errors are possible. The error of a
// call whose context is done also is context.Canceled or context.DeadlineExceeded.
var (
	// ErrNotFound: the container, sandbox or image does not exist.
	ErrNotFound = errors.New("not found")

	// ErrUnsupported: the runtime does not support the optional interface; see there for the
	// alternative. Retrying does not help. It is errors.ErrUnsupported as well.
	ErrUnsupported = fmt.Errorf("not supported by the runtime: %w", errors.ErrUnsupported)

	// ErrUnavailable: the runtime did not respond. It is down, restarting or stuck. The call
	// may have taken effect or not; it may be retried later.
	ErrUnavailable = errors.New("the runtime does not answer")
)
