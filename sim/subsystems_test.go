package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/sim"
)

// kinds returns how often entries of each kind are in the trace of a schedule, in which
// no invariant is violated.
func kinds(t *testing.T, text string) map[sim.EntryKind]int {
	t.Helper()
	schedule, err := sim.Parse(text)
	require.NoError(t, err)
	report := runSeed(t, sim.Config{Schedule: schedule})
	require.Empty(t, report.Violations)
	counts := map[sim.EntryKind]int{}
	for _, e := range report.Trace {
		counts[e.Kind]++
	}
	return counts
}

func TestAContainerWhoseLivenessProbeFailsIsRestarted(t *testing.T) {
	counts := kinds(t, "0s add web main:c=unhealthy=1m")
	assert.Greater(t, counts[sim.Started], 5)
	counts = kinds(t, "0s add web main:c=liveness")
	assert.Equal(t, 1, counts[sim.Started])
	assert.Greater(t, counts[sim.Probed], 50)
	counts = kinds(t, "0s add web main:c=liveness\n1m fault Probe kind=hung for=15s")
	assert.Equal(t, 2, counts[sim.Started])
}

func TestVolumesOfAPodThatIsGoneAreUnmounted(t *testing.T) {
	for name, end := range map[string]string{"deleted": "9s delete web", "while no agent runs": "5s kill down=10s\n9s vanish web"} {
		counts := kinds(t, "0s add web volumes=2 main:c=run\n"+end)
		assert.Equal(t, 2, counts[sim.Mounted], name)
		assert.Equal(t, 2, counts[sim.Unmounted], name)
	}
}

func TestAnImageIsRemovedWhenItIsNotInUse(t *testing.T) {
	counts := kinds(t, "0s add web main:c=start=5s\n2s collect\n20s vanish web\n60s collect")
	assert.Equal(t, 1, counts[sim.ImageRemoved])
}

func TestAResizeIsCarriedOutWhenThereIsRoom(t *testing.T) {
	counts := kinds(t, "0s add a main:c:3000=run\n1s add b main:c:500=run\n9s resize b/c cpu=2000\n60s kill down=5s\n90s delete a")
	assert.Equal(t, 3, counts[sim.ResourcesAllocated], "of b after the end of a, as its agent was started again")
	assert.Equal(t, 3, counts[sim.Resized])
}

func TestClaimsArePreparedOnceAndUnpreparedWithTheirLastPod(t *testing.T) {
	counts := kinds(t, "0s add a claims=gpu-1,nic-1 main:c=run\n1s add b claims=nic-1 main:c=run\n9s kill down=5s\n20s delete a")
	assert.Equal(t, 2, counts[sim.ClaimPrepared])
	assert.Equal(t, 1, counts[sim.ClaimUnprepared], "b uses the other")
	counts = kinds(t, "0s add a claims=gpu-1 policy=Never main:c=exit=0@5s")
	assert.Equal(t, 1, counts[sim.ClaimUnprepared], "the pod has completed")
	counts = kinds(t, "0s add a claims=gpu-1 main:c=run\n9s kill down=10s\n12s vanish a")
	assert.Equal(t, 1, counts[sim.ClaimUnprepared], "the pod was removed while no agent ran")
	counts = kinds(t, "0s add a claims=gpu-1 main:c=run\n9s reboot down=10s")
	assert.Equal(t, 2, counts[sim.ClaimPrepared], "the driver has lost it")
}

func TestAPodWaitsForItsDriver(t *testing.T) {
	for _, fault := range []string{"kind=away", "kind=lie", "kind=hung", "kind=error", "kind=lost"} {
		trace := ran(t, "0s fault driver "+fault+" for=2m\n1s add a claims=gpu-1 main:c=run\n10m delete a")
		started := of(trace, sim.Started, "a")
		if assert.Len(t, started, 1, fault) {
			assert.Greater(t, started[0].At, 2*time.Minute, fault)
		}
	}
}
