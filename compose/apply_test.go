package compose_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/podworker"
)

type adjustedPart struct {
	Limit int
	Ask   func() int
	Hooks podworker.Hooks
}

type partConfig struct {
	Limit  int
	Err    error
	Nested adjustedPart
	Hooks  podworker.Hooks
	inner  int
}

type partAdjust struct {
	Part   func(*partConfig)
	Failed func(*partConfig) error
}

func TestFunctionsAreCalledInOrderAndHooksAreJoined(t *testing.T) {
	var calls []string
	hook := func(name string) podworker.Hooks {
		return podworker.Hooks{Synced: func(podworker.SyncInfo) { calls = append(calls, name) }}
	}
	cfg := partConfig{inner: 1, Hooks: hook("own"), Nested: adjustedPart{Ask: func() int { return 1 }, Hooks: hook("nested")}}
	err := compose.Apply([]partAdjust{
		{},
		{Part: func(c *partConfig) {
			assert.Nil(t, c.Hooks.Synced)
			c.Limit, c.Hooks = 1, hook("first")
		}},
		{Part: func(c *partConfig) {
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
	cfg := partConfig{Err: errors.New("an interface"), Nested: adjustedPart{Ask: func() int { return 1 }}}
	err := compose.Apply([]partAdjust{{Part: func(c *partConfig) { *c = partConfig{Limit: 50} }}}, "Part", &cfg)
	assert.EqualError(t, err, "Config.Adjust.Part: sets Err, Nested.Ask to nil")
}

func TestTheErrorOfAFunctionIsReturned(t *testing.T) {
	failed := errors.New("failed")
	err := compose.Apply([]partAdjust{{Failed: func(*partConfig) error { return nil }}, {Failed: func(*partConfig) error { return failed }}}, "Failed", new(partConfig))
	require.ErrorIs(t, err, failed)
	assert.EqualError(t, err, "Config.Adjust.Failed: failed")
}
