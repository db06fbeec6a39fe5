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

func TestParseRejectsInvalidSchedules(t *testing.T) {
	for text, want := range map[string]string{
		"1s":                                               "no time and action",
		"soon add web main:c=run":                          `invalid time since the start "soon"`,
		"1s dance web":                                     "no such action",
		"1s add":                                           "no pod or calls",
		"1s add web":                                       "the pod has no containers",
		"1s add web policy=Often main:c=run":               "no such restart policy",
		"1s add web main:c=sleep":                          `must begin with "run" or "exit-<code>-<time>"`,
		"1s add web main:c=run_ready-1us":                  "is not a number of milliseconds",
		"1s add web boss:c=run":                            "containers are init, side or main",
		"1s exit web code=1":                               "no container",
		"1s fault Pods kind=rude":                          `no such kind of fault: "rude"`,
		"1s fault Pods kind=lost percent=101":              "percent is not between 0 and 100",
		"1s fault Pods kind=stale":                         "no delay",
		"1s room pods=many":                                "invalid syntax",
		"1s add web main:c=exit-1-2s_times-0":              "must be at least 1",
		"1s kill when=later":                               `must be "before" or "after"`,
		"1s kill calls=-1":                                 "a number is negative",
		"1s add web main:c=run colour=green":               "unknown word",
		"1s add web volumes=101 main:c=run":                "out of range",
		"1s add web main:c:much=run":                       "invalid syntax",
		"1s resize web cpu=100":                            "no container",
		"1s add web main:c=run_up-1us":                     "is not a number of milliseconds",
		"1s add web grace=-1 main:c=run":                   "out of range",
		"\n# why\n\n1s add web main:c=run/Never/x:Restart": "line 4",
		"1s add web claims=gpu-1,, main:c=run":             "a name is empty",
		"1s add web static claims=gpu-1 main:c=run":        "a static pod has no claims",
	} {
		_, err := sim.Parse(text)
		assert.ErrorContains(t, err, want, text)
	}
}

func TestBehaviorTextRoundTrips(t *testing.T) {
	b := sim.Behavior{
		Exits: true, Code: 137, ExitAfter: 90 * time.Minute, OOM: true, Stubborn: true,
		StopDelay: 1500 * time.Millisecond, StartDelay: time.Hour, ReadyAfter: 90 * time.Second, Times: 2, Version: 3,
		UpAfter: time.Second, SickAfter: 2 * time.Second, Probed: true,
	}
	assert.Equal(t, "exit-137-1h30m_oom_times-2_stubborn_stop-1500ms_start-1h_ready-1m30s_up-1s_sick-2s_probed_v3", b.String())
	again, err := sim.ParseBehavior(b.Image())
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
