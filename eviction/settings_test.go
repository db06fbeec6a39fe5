package eviction_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/eviction"
)

type values = map[string]string

func TestErrorsOfSettingsMatchTheKubelets(t *testing.T) { // ev-1 … ev-10
	for name, tc := range map[string]struct {
		s    eviction.Settings
		want string // the thresholds; or "error: …"
	}{
		"ev-1 a quantity":          {eviction.Settings{Hard: values{"memory.available": "100Mi"}}, "memory.available<100Mi"},
		"ev-1 a percentage":        {eviction.Settings{Hard: values{"nodefs.available": "12.5%"}}, "nodefs.available<12.5%"},
		"ev-1 in order":            {eviction.Settings{Hard: values{"pid.available": "10", "memory.available": "1"}}, "memory.available<1; pid.available<10"},
		"ev-1 zero":                {eviction.Settings{Hard: values{"memory.available": "0"}}, "error: eviction threshold memory.available must be positive: 0"},
		"ev-1 below zero":          {eviction.Settings{Hard: values{"memory.available": "-1Gi"}}, "error: eviction threshold memory.available must be positive: -1Gi"},
		"ev-1 beyond all":          {eviction.Settings{Hard: values{"nodefs.available": "110%"}}, "error: eviction percentage threshold nodefs.available must be <= 100%: 110%"},
		"ev-1 below nothing":       {eviction.Settings{Hard: values{"nodefs.available": "-1%"}}, "error: eviction percentage threshold nodefs.available must be >= 0%: -1%"},
		"ev-1 no number":           {eviction.Settings{Hard: values{"nodefs.available": "NaN%"}}, "error: eviction percentage threshold nodefs.available must be >= 0%: NaN%"},
		"ev-1 words":               {eviction.Settings{Hard: values{"memory.available": "abc"}}, "error: eviction setting of memory.available: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"},
		"ev-1 words of a hundred":  {eviction.Settings{Hard: values{"memory.available": "abc%"}}, `error: eviction setting of memory.available: strconv.ParseFloat: parsing "abc": invalid syntax`},
		"ev-2 switched off":        {eviction.Settings{Hard: values{"memory.available": "0%", "nodefs.available": "100%"}}, ""},
		"ev-4 unknown":             {eviction.Settings{Hard: values{"cpu.available": "1"}}, "error: unsupported eviction signal cpu.available"},
		"ev-4 unknown, all of it":  {eviction.Settings{Soft: values{"x": "1"}, SoftGracePeriod: values{"y": "1s"}, MinimumReclaim: values{"z": "1"}}, "error: unsupported eviction signal x\nunsupported eviction signal y\nunsupported eviction signal z"},
		"ev-5 soft":                {eviction.Settings{Soft: values{"memory.available": "1Gi"}, SoftGracePeriod: values{"memory.available": "1m30s"}}, "memory.available<1Gi for 1m30s"},
		"ev-5 soft without grace":  {eviction.Settings{Soft: values{"memory.available": "1Gi"}}, "error: grace period must be specified for the soft eviction threshold memory.available"},
		"ev-5 grace below zero":    {eviction.Settings{SoftGracePeriod: values{"memory.available": "-1s"}}, "error: invalid eviction grace period specified: -1s, must be a positive value"},
		"ev-5 grace in words":      {eviction.Settings{SoftGracePeriod: values{"memory.available": "soon"}}, `error: eviction setting of memory.available: time: invalid duration "soon"`},
		"ev-5 grace for nothing":   {eviction.Settings{SoftGracePeriod: values{"memory.available": "1s"}}, ""},
		"ev-6 min reclaim":         {eviction.Settings{Hard: values{"memory.available": "1Gi"}, Soft: values{"memory.available": "2Gi"}, SoftGracePeriod: values{"memory.available": "1s"}, MinimumReclaim: values{"memory.available": "5%"}}, "memory.available<1Gi, min reclaim 5%; memory.available<2Gi for 1s, min reclaim 5%"},
		"ev-6 of none":             {eviction.Settings{Hard: values{"memory.available": "1Gi"}, MinimumReclaim: values{"memory.available": "0"}}, "memory.available<1Gi, min reclaim 0"},
		"ev-6 below zero":          {eviction.Settings{MinimumReclaim: values{"memory.available": "-1"}}, "error: negative eviction minimum reclaim specified for memory.available"},
		"ev-6 0%":                  {eviction.Settings{MinimumReclaim: values{"memory.available": "0%"}}, "error: eviction percentage minimum reclaim memory.available must be positive: 0%"},
		"ev-7 pods":                {eviction.Settings{Hard: values{"memory.available": "1Gi", "nodefs.available": "1%"}, MinimumReclaim: values{"memory.available": "1Mi"}, EnforcePods: true}, "memory.available<1Gi, min reclaim 1Mi; nodefs.available<1%; allocatableMemory.available<1Gi, min reclaim 1Mi"},
		"ev-7 not of soft ones":    {eviction.Settings{Soft: values{"memory.available": "1Gi"}, SoftGracePeriod: values{"memory.available": "1s"}, EnforcePods: true}, "memory.available<1Gi for 1s"},
		"ev-8 containerfs":         {eviction.Settings{Hard: values{"containerfs.available": "1%", "nodefs.available": "2%"}}, "nodefs.available<2%"},
		"ev-9 all defaults":        {eviction.Settings{}.WithDefaults("linux", false), "memory.available<100Mi; nodefs.available<10%; nodefs.inodesFree<5%; imagefs.available<15%; imagefs.inodesFree<5%"},
		"ev-9 defaults of Windows": {eviction.Settings{}.WithDefaults("windows", false), "memory.available<500Mi; nodefs.available<10%; imagefs.available<15%"},
		"ev-9 replaced":            {eviction.Settings{Hard: values{"memory.available": "1Gi"}}.WithDefaults("linux", false), "memory.available<1Gi"},
		"ev-9 merged":              {eviction.Settings{Hard: values{"memory.available": "1Gi", "pid.available": "1"}}.WithDefaults("linux", true), "memory.available<1Gi; nodefs.available<10%; nodefs.inodesFree<5%; imagefs.available<15%; imagefs.inodesFree<5%; pid.available<1"},
		"ev-9 none":                {eviction.Settings{Hard: values{}}.WithDefaults("linux", false), ""},
		"ev-9 merged, and one off": {eviction.Settings{Hard: values{"memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%"}}.WithDefaults("linux", true), "imagefs.available<15%; imagefs.inodesFree<5%"},
	} {
		t.Run(name, func(t *testing.T) {
			thresholds, err := tc.s.Parse()
			var words []string
			for _, th := range thresholds {
				words = append(words, th.String())
			}
			got := strings.Join(words, "; ")
			if err != nil {
				got = "error: " + err.Error()
			}
			assert.Equal(t, tc.want, got)
		})
	}
	assert.Equal(t, []eviction.Signal{"containerfs.available", "containerfs.inodesFree"}, eviction.Settings{
		Hard: values{"containerfs.available": "1%"}, Soft: values{"containerfs.available": "1%", "containerfs.inodesFree": "1%"},
	}.Ignored(), "ev-8")
}

func TestInvalidConfigs(t *testing.T) { // ev-10, ev-5
	w := newWorld()
	for name, tc := range map[string]struct {
		change func(c *eviction.Config)
		want   string
	}{
		"ev-10":      {func(c *eviction.Config) { c.Policy.MaxPodGracePeriod = -1 }, "invalid configuration: evictionMaxPodGracePeriod -1 must not be negative"},
		"transition": {func(c *eviction.Config) { c.Policy.Transition = -1 }, "evictionPressureTransitionPeriod -1ns must not be negative"},
		"transitions": {func(c *eviction.Config) {
			c.Policy.Transitions = map[eviction.Signal]time.Duration{"x": 1, "pid.available": -1}
		},
			"invalid configuration: the transition period -1ns of pid.available must not be negative\nunsupported eviction signal x"},
		"victims": {func(c *eviction.Config) { c.Policy.MaxVictims = -1 }, "MaxVictims -1 must not be negative"},
		"signal":  {func(c *eviction.Config) { c.Policy.Thresholds = []eviction.Threshold{{Signal: "x"}} }, "unsupported eviction signal x"},
		"part": {func(c *eviction.Config) {
			c.Policy.Thresholds = []eviction.Threshold{{Signal: "pid.available", Value: eviction.Value{Percentage: float32(math.NaN())}}}
		}, "eviction percentage threshold pid.available must be between 0% and 100%: NaN%"},
		"grace": {func(c *eviction.Config) {
			c.Policy.Thresholds = []eviction.Threshold{{Signal: "pid.available", GracePeriod: -1}}
		}, "must be a positive value"},
		"period": {func(c *eviction.Config) { c.Period = -1 }, "negative duration"},
	} {
		t.Run(name, func(t *testing.T) {
			w.config = eviction.Config{}
			tc.change(&w.config)
			_, err := w.manager()
			require.ErrorContains(t, err, tc.want)
			assert.ErrorContains(t, err, "eviction: ")
		})
	}
	_, err := eviction.New(eviction.Config{})
	assert.EqualError(t, err, "eviction: Config.Summary is nil\nConfig.Pods is nil")
}

func FuzzParse(f *testing.F) {
	f.Add("memory.available", "100Mi", "1m", "5%")
	f.Add("nodefs.available", "110%", "-1s", "-1")
	f.Add("x", "NaN%", "", "1e400%")
	f.Add("pid.available", "9E9", "9999999h", "0%%")
	f.Fuzz(func(t *testing.T, signal, value, grace, reclaim string) {
		s := eviction.Settings{
			Hard: values{signal: value}, Soft: values{signal: value}, SoftGracePeriod: values{signal: grace},
			MinimumReclaim: values{signal: reclaim}, EnforcePods: true,
		}
		thresholds, err := s.Parse()
		if err != nil {
			require.NotEmpty(t, err.Error())
			require.Empty(t, thresholds)
			return
		}
		for _, th := range thresholds {
			require.NotEmpty(t, th.Signal.Resource(), "%v", th)
			require.NotEmpty(t, th.Signal.Condition())
			for _, capacity := range []int64{0, 1, 1 << 30, math.MaxInt64} {
				n := th.Value.Of(capacity)
				require.GreaterOrEqual(t, n, int64(0), "%v of %d", th, capacity)
				if th.Value.Quantity == nil {
					require.LessOrEqual(t, n, capacity, "%v of %d", th, capacity)
				}
			}
			_ = fmt.Sprint(th)
		}
	})
}
