// Package runonce rejects the second call of a Run method.
package runonce

import (
	"fmt"
	"sync/atomic"
)

// A Guard belongs to one value with a Run method. Its zero value is ready for use.
// Safe for concurrent use.
type Guard struct{ called atomic.Bool }

// Enter returns nil the first time. Later calls, during the first Run and after it,
// return "<name>.Run was called before"; name is the name of the type, as in "pleg:
// Generator".
func (g *Guard) Enter(name string) error {
	if g.called.Swap(true) {
		return fmt.Errorf("%s.Run was called before", name)
	}
	return nil
}
