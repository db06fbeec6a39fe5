package seedrun_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/internal/seedrun"
)

// A failing is a test that fails and records what it logs.
type failing struct {
	testing.TB
	cleanups []func()
	log      string
}

func (f *failing) Helper()                         {}
func (f *failing) Failed() bool                    { return true }
func (f *failing) Cleanup(do func())               { f.cleanups = append(f.cleanups, do) }
func (f *failing) Logf(format string, args ...any) { f.log += fmt.Sprintf(format, args...) }

func TestSeedsAreFixedUnlessFreshOnesAreRequested(t *testing.T) {
	t.Setenv("KUBEPARTS_SEED", "")
	t.Setenv("KUBEPARTS_FRESH_SEEDS", "")
	assert.EqualValues(t, 1, seedrun.Seed(t))
	assert.Equal(t, seedrun.Rand(t).Uint64(), seedrun.Rand(t).Uint64())

	t.Setenv("KUBEPARTS_FRESH_SEEDS", "1")
	assert.NotEqual(t, seedrun.Seed(t), seedrun.Seed(t))

	t.Setenv("KUBEPARTS_SEED", "18446744073709551615")
	assert.EqualValues(t, uint64(1<<64-1), seedrun.Seed(t), "a seed that is repeated")
}

func TestAFailureLogsItsSeed(t *testing.T) {
	t.Setenv("KUBEPARTS_SEED", "42")
	f := new(failing)
	seedrun.Seed(f)
	assert.Empty(t, f.log)
	for _, do := range f.cleanups {
		do()
	}
	assert.Equal(t, "seed 42: KUBEPARTS_SEED=42 repeats it", f.log)
}
