package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/sim"
)

func TestASchedulesTextIsTheSchedule(t *testing.T) {
	for seed := range uint64(500) {
		s := sim.Draw(seed, sim.Options{})
		again, err := sim.Parse(s.String())
		require.NoError(t, err, "seed %d", seed)
		require.Equal(t, s.String(), again.String(), "seed %d", seed)
	}
}

func TestAScheduleThatMakesNoSenseIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"1s":                                               "it has no time and action",
		"soon add web main:c=run":                          `"soon" is no time since the start`,
		"1s dance web":                                     "no such action",
		"1s add":                                           "it does not say whom it concerns",
		"1s add web":                                       "the pod has no containers",
		"1s add web policy=Often main:c=run":               "no such restart policy",
		"1s add web main:c=sleep":                          `neither "run" nor "exit-<code>-<time>"`,
		"1s add web main:c=run_ready-1us":                  "is not a number of milliseconds",
		"1s add web boss:c=run":                            "containers are init, side or main",
		"1s exit web code=1":                               "it names no container",
		"1s fault Pods kind=rude":                          `no such kind of fault: "rude"`,
		"1s fault Pods kind=lost percent=101":              "percent is not 0 … 100",
		"1s fault Pods kind=stale":                         "it does not say how old lists are",
		"1s room pods=many":                                "invalid syntax",
		"1s add web main:c=exit-1-2s_times-0":              "it exits once or more",
		"1s kill when=later":                               `neither "before" nor "after"`,
		"1s kill calls=-1":                                 "a number is negative",
		"1s add web main:c=run colour=green":               "unknown word",
		"1s add web volumes=101 main:c=run":                "out of range",
		"1s add web main:c:much=run":                       "invalid syntax",
		"1s resize web cpu=100":                            "it names no container",
		"1s add web main:c=run_up-1us":                     "is not a number of milliseconds",
		"1s add web grace=-1 main:c=run":                   "out of range",
		"\n# why\n\n1s add web main:c=run/Never/x:Restart": "line 4",
	} {
		_, err := sim.Parse(text)
		assert.ErrorContains(t, err, want, text)
	}
}

func TestABehavioursTextIsTheBehaviour(t *testing.T) {
	b := sim.Behaviour{
		Exits: true, Code: 137, ExitAfter: 90 * time.Minute, OOM: true, Stubborn: true,
		StopDelay: 1500 * time.Millisecond, StartDelay: time.Hour, ReadyAfter: 90 * time.Second, Times: 2, Version: 3,
		UpAfter: time.Second, SickAfter: 2 * time.Second, Probed: true,
	}
	assert.Equal(t, "exit-137-1h30m_oom_times-2_stubborn_stop-1500ms_start-1h_ready-1m30s_up-1s_sick-2s_probed_v3", b.String())
	again, err := sim.ParseBehaviour(b.Image())
	require.NoError(t, err)
	assert.Equal(t, b, again)
}

func FuzzParse(f *testing.F) {
	for seed := range uint64(10) {
		f.Add(sim.Draw(seed, sim.Options{}).String())
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := sim.Parse(text)
		if err != nil {
			return
		}
		again, err := sim.Parse(s.String())
		require.NoError(t, err)
		require.Equal(t, s.String(), again.String())
	})
}
