package adjust_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/adjust"
	"github.com/kubeparts/kubeparts/podworker"
)

type nested struct {
	Limit int
	Ask   func() int
	Hooks podworker.Hooks
}

type config struct {
	Limit  int
	Err    error
	Nested nested
	Hooks  podworker.Hooks
	inner  int
}

type adjusts struct {
	Part   func(*config)
	Failed func(*config) error
}

func TestFunctionsAreCalledInOrderAndHooksAreJoined(t *testing.T) {
	var calls []string
	hook := func(name string) podworker.Hooks {
		return podworker.Hooks{Synced: func(podworker.SyncInfo) { calls = append(calls, name) }}
	}
	cfg := config{inner: 1, Hooks: hook("own"), Nested: nested{Ask: func() int { return 1 }, Hooks: hook("nested")}}
	err := adjust.Apply([]adjusts{
		{},
		{Part: func(c *config) {
			assert.Nil(t, c.Hooks.Synced)
			c.Limit, c.Hooks = 1, hook("first")
		}},
		{Part: func(c *config) {
			assert.Nil(t, c.Hooks.Synced)
			assert.Equal(t, 1, c.Limit)
			c.Nested.Limit, c.Nested.Hooks.Synced = 2, hook("second").Synced
		}},
	}, "Part", &cfg)
	require.NoError(t, err)
	assert.Equal(t, []int{1, 2, 1}, []int{cfg.Limit, cfg.Nested.Limit, cfg.inner})
	cfg.Hooks.Synced(podworker.SyncInfo{})
	cfg.Nested.Hooks.Synced(podworker.SyncInfo{})
	assert.Equal(t, []string{"own", "first", "nested", "second"}, calls)
}

func TestARemovedDependencyIsAnError(t *testing.T) {
	cfg := config{Err: errors.New("an interface"), Nested: nested{Ask: func() int { return 1 }}}
	err := adjust.Apply([]adjusts{{Part: func(c *config) { *c = config{Limit: 50} }}}, "Part", &cfg)
	assert.EqualError(t, err, "Config.Adjust.Part: sets Err, Nested.Ask to nil")
}

func TestTheErrorOfAFunctionIsReturned(t *testing.T) {
	failed := errors.New("failed")
	err := adjust.Apply([]adjusts{{Failed: func(*config) error { return nil }}, {Failed: func(*config) error { return failed }}}, "Failed", new(config))
	require.ErrorIs(t, err, failed)
	assert.EqualError(t, err, "Config.Adjust.Failed: failed")
}
