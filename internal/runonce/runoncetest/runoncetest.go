// Package runoncetest checks that a Run method can be called only once.
package runoncetest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Check calls run twice with a canceled context. It fails t unless the second call returns
// "<name>.Run was called before", where name is the name of the type, as in "pleg: Generator". The
// first call may return another error.
func Check(t testing.TB, name string, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	want := name + ".Run was called before"
	if err := run(ctx); err != nil {
		assert.NotContains(t, err.Error(), want, "first call of Run")
	}
	assert.EqualError(t, run(ctx), want, "second call of Run")
}
