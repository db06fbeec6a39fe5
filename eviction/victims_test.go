package eviction_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/eviction"
)

// Ten pods of 100Mi, of which three must terminate: a failed kill is replaced by one more pod of
// the ranking, not by as many as the whole deficit needs.
func TestAFailedKillIsReplacedByOnePod(t *testing.T) {
	for name, tt := range map[string]struct {
		unkillable []int
		evicted    []string
		failed     []string
	}{
		"none":         {nil, []string{"p0", "p1", "p2"}, nil},
		"one":          {[]int{1}, []string{"p0", "p2", "p3"}, []string{"p1"}},
		"two":          {[]int{0, 2}, []string{"p1", "p3", "p4"}, []string{"p0", "p2"}},
		"a later wave": {[]int{0, 3}, []string{"p1", "p2", "p4"}, []string{"p0", "p3"}},
		"all":          {[]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, nil, []string{"p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.capacity["memory.available"] = 2 << 30
				w.other["memory.available"] = 2<<30 - 1000<<20
				thresholds, err := eviction.Settings{Hard: values{"memory.available": "300Mi"}, EnforcePods: true}.Parse()
				require.NoError(t, err)
				w.config.Policy.Thresholds, w.config.Policy.MaxVictims = thresholds, 10
				for i := range 10 {
					// In rank order.
					w.pods = append(w.pods, &worldPod{Pod: podOf(fmt.Sprint("p", i)), stats: true, uses: map[eviction.Signal]int64{"memory.available": 100<<20 - int64(i)}})
				}
				for _, i := range tt.unkillable {
					w.pods[i].unkilled = true
				}
				m, err := w.manager()
				require.NoError(t, err)
				result, err := m.Pass(t.Context())
				require.NoError(t, err)
				names := func(list []eviction.Victim) (names []string) {
					for _, e := range list {
						names = append(names, e.Pod.Name)
					}
					return names
				}
				assert.Equal(t, tt.evicted, names(result.Evicted))
				assert.Equal(t, tt.failed, names(result.Failed))
			})
		})
	}
}
