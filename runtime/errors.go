package runtime

import (
	"errors"
	"fmt"
)

// What callers of a Runtime branch on, with errors.Is. An error may be none of
// them. One of a call that ended because its context did is that context's
// (context.Canceled, context.DeadlineExceeded), too.
var (
	// ErrNotFound: the runtime does not know the container, sandbox or image
	// it was asked for. It is gone, or never was.
	ErrNotFound = errors.New("not found")

	// ErrUnsupported: the runtime has no such power, and asking again will not
	// change that. The power's documentation says what to do instead. It is
	// errors.ErrUnsupported as well.
	ErrUnsupported = fmt.Errorf("not supported by the runtime: %w", errors.ErrUnsupported)

	// ErrUnavailable: the runtime did not answer. It is down, restarting or
	// stuck. What was asked for may have happened or not; ask again later.
	ErrUnavailable = errors.New("the runtime does not answer")
)
