package sim_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/sim"
)

func TestASchedulesTextIsTheSchedule(t *testing.T) {
	for seed := range uint64(500) {
		s := sim.Draw(seed, sim.Options{Checkpoints: seed%2 == 1})
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
		"1s add web main:c=sleep":                          "unknown option",
		"1s add web main:c=ready=1us":                      "cannot be the tag of an image",
		"1s add web boss:c=run":                            "containers are init, side or main",
		"1s exit web code=1":                               "no container",
		"1s fault Pods kind=rude":                          `no such kind of fault: "rude"`,
		"1s fault Pods kind=lost percent=101":              "percent is not between 0 and 100",
		"1s fault Pods kind=stale":                         "no delay",
		"1s room pods=many":                                "invalid syntax",
		"1s add web main:c=exit=1@2s,crashes=-1":           `"-1" is not a number from 0`,
		"1s kill when=later":                               `must be "before" or "after"`,
		"1s kill calls=-1":                                 "a number is negative",
		"1s add web main:c=run colour=green":               "unknown word",
		"1s add web volumes=101 main:c=run":                "out of range",
		"1s add web main:c:much=run":                       "invalid syntax",
		"1s resize web cpu=100":                            "no container",
		"1s add web main:c=started=1us":                    "cannot be the tag of an image",
		"1s add web grace=-1 main:c=run":                   "out of range",
		"\n# why\n\n1s add web main:c=run/Never/x:Restart": "line 4",
		"1s add web claims=gpu-1,, main:c=run":             "a name is empty",
		"1s add web static claims=gpu-1 main:c=run":        "a static pod has no claims",
		"1s restore copy":                                  "no from",
	} {
		_, err := sim.Parse(text)
		assert.ErrorContains(t, err, want, text)
	}
}

func TestTheSpecOfAPodContainsTheBehaviorOfItsContainers(t *testing.T) {
	const text = "start=1h,oom@1h30m,crashes=2,stop=1.5s,ignoreTERM,ready=1m30s,started=1s,unhealthy=2s,liveness,version=3"
	b, err := fake.ParseBehavior(text)
	require.NoError(t, err)
	image := sim.Image(b)
	assert.Equal(t, "sim.test/does:start-1h_oom..1h30m_crashes-2_stop-1.5s_ignoreTERM_ready-1m30s_started-1s_unhealthy-2s_liveness_version-3", image)
	schedule, err := sim.Parse("1s add web main:c=" + text)
	require.NoError(t, err)
	assert.Equal(t, image, schedule[0].Shape.Pod("web", "web").Spec.Containers[0].Image)
}

func FuzzParse(f *testing.F) {
	for seed := range uint64(10) {
		f.Add(sim.Draw(seed, sim.Options{Checkpoints: seed%2 == 1}).String())
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
