package compose_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

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

func TestFunctionsAreCalledInOrderAndHooksAreJoined(t *testing.T) {
	var calls []string
	hook := func(name string) podworker.Hooks {
		return podworker.Hooks{Synced: func(podworker.SyncInfo) { calls = append(calls, name) }}
	}
	cfg := partConfig{inner: 1, Hooks: hook("own"), Nested: adjustedPart{Ask: func() int { return 1 }, Hooks: hook("nested")}}
	err := compose.Apply([]compose.Adjustment{
		compose.Adjust(func(c *podworker.Config) { t.Error("of another part") }),
		compose.Adjust(func(c *partConfig) {
			assert.Nil(t, c.Hooks.Synced)
			c.Limit, c.Hooks = 1, hook("first")
		}),
		compose.Adjust(func(c *partConfig) {
			assert.Nil(t, c.Hooks.Synced)
			assert.Equal(t, 1, c.Limit)
			c.Nested.Limit, c.Nested.Hooks.Synced = 2, hook("second").Synced
		}),
	}, &cfg)
	require.NoError(t, err)
	assert.Equal(t, []int{1, 2, 1}, []int{cfg.Limit, cfg.Nested.Limit, cfg.inner})
	cfg.Hooks.Synced(podworker.SyncInfo{})
	cfg.Nested.Hooks.Synced(podworker.SyncInfo{})
	assert.Equal(t, []string{"own", "first", "nested", "second"}, calls)
}

func TestARemovedDependencyIsAnError(t *testing.T) {
	cfg := partConfig{Err: errors.New("an interface"), Nested: adjustedPart{Ask: func() int { return 1 }}}
	err := compose.Apply([]compose.Adjustment{compose.Adjust(func(c *partConfig) { *c = partConfig{Limit: 50} })}, &cfg)
	assert.EqualError(t, err, "Config.Adjust of compose_test.partConfig: sets Err, Nested.Ask to nil")
}

func TestTheErrorOfAFunctionIsReturned(t *testing.T) {
	failed := errors.New("failed")
	err := compose.Apply([]compose.Adjustment{
		compose.TryAdjust(func(*partConfig) error { return nil }),
		compose.TryAdjust(func(*partConfig) error { return failed }),
	}, new(partConfig))
	require.ErrorIs(t, err, failed)
	assert.EqualError(t, err, "Config.Adjust of compose_test.partConfig: failed")
}

func TestAnAdjustmentOfNoPartIsAnError(t *testing.T) {
	of := compose.Adjust(func(*partConfig) {})
	known := []reflect.Type{reflect.TypeFor[podworker.Config](), reflect.TypeFor[partConfig]()}
	require.NoError(t, compose.CheckAdjust([]compose.Adjustment{of}, known...))
	assert.EqualError(t, compose.CheckAdjust([]compose.Adjustment{of}, known[:1]...),
		"Config.Adjust[0]: no part has a compose_test.partConfig; want one of [podworker.Config]")
	assert.Len(t, compose.Only([]compose.Adjustment{of, compose.Adjust(func(*podworker.Config) {}), of}, known[1]), 2)
	assert.EqualError(t, compose.CheckAdjust([]compose.Adjustment{of, nil}, known...), "Config.Adjust[1] is nil")
	for _, none := range []compose.Adjustment{compose.Adjust[partConfig](nil), compose.TryAdjust[partConfig](nil)} {
		assert.EqualError(t, compose.CheckAdjust([]compose.Adjustment{none}, known...), "Config.Adjust[0] is nil")
	}
}

// The constructor of an assembly applies the list of its user to the configuration of each part.
func ExampleAdjust() {
	adjust := []compose.Adjustment{compose.Adjust(func(c *podworker.Config) { c.Parallel = 50 })}
	workers := podworker.Config{Resync: time.Minute}
	if err := compose.Apply(adjust, &workers); err != nil {
		fmt.Println(err)
	}
	fmt.Println(workers.Parallel, workers.Resync)
	// Output: 50 1m0s
}
