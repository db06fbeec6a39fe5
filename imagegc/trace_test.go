package imagegc_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/imagegc"
)

func TestTraceWrapsEachPass(t *testing.T) {
	type key struct{}
	w := newWorld(100)
	cfg := w.config()
	var ended []error
	cfg.Hooks.Trace = func(ctx context.Context) (context.Context, func(error)) {
		return context.WithValue(ctx, key{}, "traced"), func(err error) { ended = append(ended, err) }
	}
	space := cfg.Space
	cfg.Space = func(ctx context.Context) (imagegc.Space, error) {
		assert.Equal(t, "traced", ctx.Value(key{}))
		return space(ctx)
	}
	m := newManager(t, cfg)
	_, err := m.Collect(t.Context())
	require.NoError(t, err)
	away := errors.New("the runtime is away")
	w.fail["images"] = away
	_, err = m.Collect(t.Context())
	require.ErrorIs(t, err, away)
	require.Len(t, ended, 2)
	require.NoError(t, ended[0])
	assert.ErrorIs(t, ended[1], away)
}
