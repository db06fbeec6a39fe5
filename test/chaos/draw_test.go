package chaos

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func draws(seed uint64, n int) (lines []string) {
	d := newDrawer(seed, kindNames(), 20)
	d.storms = true
	lines = append(lines, d.first().String())
	for range n {
		lines = append(lines, d.next().String())
	}
	return lines
}

func TestASeedIsTheSameRounds(t *testing.T) {
	assert.Equal(t, draws(7, 50), draws(7, 50))
	assert.NotEqual(t, draws(7, 50), draws(8, 50))
}

func TestEachKindComesAsOftenAsTheOthers(t *testing.T) {
	d := newDrawer(1, kindNames(), 10)
	d.first()
	seen := map[string]int{}
	for range 3 * len(kinds) {
		r := d.next()
		require.Len(t, r.faults(), 1)
		seen[r.kind()]++
	}
	for _, k := range kinds {
		assert.Equal(t, 3, seen[k.name], k.name)
	}
}

// What a round asks for can be done: pods are made once, are deleted when they have
// been made and not twice, and no fault is about one that is not there or is going.
func TestRoundsCanBeDone(t *testing.T) {
	for seed := range uint64(50) {
		d := newDrawer(seed, kindNames(), 3+int(seed))
		d.storms = true
		there, ever := map[string]bool{}, map[string]bool{}
		rounds := []round{d.first()}
		for range 60 {
			rounds = append(rounds, d.next())
		}
		for _, r := range rounds {
			before := len(there)
			require.True(t, slices.IsSortedFunc(r.steps, func(a, b step) int { return int(a.at - b.at) }))
			gone := map[string]bool{}
			for _, s := range r.steps {
				switch {
				case s.make != "":
					require.False(t, ever[s.make], "seed %d, %s", seed, r)
					require.NotNil(t, shapeNamed(s.shape))
					there[s.make], ever[s.make] = true, true
				case s.delete != "":
					require.True(t, there[s.delete], "seed %d, %s", seed, r)
					delete(there, s.delete)
					gone[s.delete] = true
				default:
					k := kindNamed(s.fault)
					require.GreaterOrEqual(t, s.length, k.least)
					require.LessOrEqual(t, s.length, max(k.least, k.most))
					require.Equal(t, s.target != "" && k.about, s.target != "")
				}
			}
			for _, s := range r.steps {
				if s.target != "" {
					require.True(t, there[s.target] && !gone[s.target], "seed %d, %s", seed, r)
				}
			}
			if faults := r.faults(); len(faults) == 2 {
				require.False(t, losesContainers(faults[0], faults[1]), "seed %d, %s", seed, r)
			}
			if r.n > 0 {
				require.Equal(t, before, len(there), "as many come as go")
			}
		}
	}
}

func TestShortRoundsAreShort(t *testing.T) {
	d := newDrawer(1, kindNames(), 10)
	d.short = true
	d.first()
	for range 100 {
		for _, s := range d.next().steps {
			assert.LessOrEqual(t, s.length, 4*time.Second)
		}
	}
}
