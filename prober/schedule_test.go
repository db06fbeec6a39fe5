package prober_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
)

func TestProbesOverAContainersLifecycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		m, stop := n.manager(prober.Config{})
		defer stop()
		p := pod("u", container("web", "SRL", nil))
		m.Add(p)
		time.Sleep(15 * time.Second)
		assert.Empty(t, n.take(&n.runs), "there is no container yet (prober-11, prober-13)")

		n.starts("u", "web", "1")
		n.say("web/Startup", failure)
		m.Add(p)
		time.Sleep(15 * time.Second)
		assert.Equal(t, []string{"15s web Startup 1", "25s web Startup 1"}, n.take(&n.runs), "others wait for it (prober-20)")
		assert.Equal(t, "1 liveness=success, 1 startup=unknown, web startup=unknown readiness=failure", shown(m, p), "the initial results (prober-14)")
		n.say("web/Startup", success)
		time.Sleep(6 * time.Second)
		assert.Equal(t, []string{"35s web Liveness 1", "35s web Readiness 1", "35s web Startup 1"}, n.take(&n.runs), "it has started: at once (prober-67)")
		assert.Equal(t, "1 liveness=success, 1 startup=success, web startup=success readiness=success", shown(m, p))
		n.take(&n.changes)

		n.say("web", failure)
		time.Sleep(time.Minute) // prober-7: a period each; a startup that passed is not run (prober-25)
		assert.Equal(t, []string{
			"45s web Liveness 1", "45s web Readiness 1", "55s web Liveness 1", "55s web Readiness 1",
			"1m5s web Liveness 1", "1m5s web Readiness 1", "1m15s web Readiness 1", "1m25s web Readiness 1", "1m35s web Readiness 1",
		}, n.take(&n.runs), "after the third failure liveness is on hold (prober-15)")
		assert.Equal(t, []string{"1m5s web Liveness 1 failure", "1m5s web Readiness 1 failure"}, n.take(&n.changes), "prober-24, prober-62")

		n.exits("u", "web", "1", 137)
		m.Inspect("u")
		assert.Equal(t, "1 liveness=failure, 1 startup=success, web startup=success readiness=failure", shown(m, p), "prober-16")
		n.say("web/Startup", success)
		n.say("web", success)
		n.starts("u", "web", "2")
		assert.Equal(t, "1 liveness=failure, 1 startup=success, web startup=unknown readiness=unknown", shown(m, p),
			"results of one instance do not apply to another (prober-61)")
		assert.Equal(t, "2 liveness=success, 2 startup=success, web startup=success readiness=success", shown(m, p),
			"a read caused an inspection, and a probe at once")
		assert.Equal(t, []string{"1m36s web Liveness 2", "1m36s web Readiness 2", "1m36s web Startup 2"}, n.take(&n.runs))
	})
}

func TestProbedContainers(t *testing.T) { // prober-1, prober-2, prober-3
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		m, stop := n.manager(prober.Config{})
		defer stop()
		p := pod("u", container("b", "SRL", nil), container("a", "L", nil), container("none", "", nil))
		sidecar := container("sidecar", "LR", nil)
		sidecar.RestartPolicy = new(v1.ContainerRestartPolicyAlways)
		p.Spec.InitContainers = []v1.Container{container("setup", "SRL", nil), sidecar}
		p.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon(container("debug", "SRL", nil))}}
		want := []string{"b Startup", "b Readiness", "b Liveness", "a Liveness", "sidecar Readiness", "sidecar Liveness"}
		m.Add(p)
		assert.Equal(t, want, m.Workers())
		m.Add(p.DeepCopy())
		assert.Equal(t, want, m.Workers(), "adding it again adds nothing (prober-4)")

		m.StopLiveness(p)
		assert.Equal(t, []string{"b Readiness", "sidecar Readiness"}, m.Workers(), "prober-74")
		m.Add(p.DeepCopy())
		assert.Equal(t, []string{"b Readiness", "sidecar Readiness"}, m.Workers(), "it stays so")
		m.Remove("u")
		assert.Empty(t, m.Workers(), "prober-75")
		assert.ElementsMatch(t, want, n.take(&n.removed), "the series of each are removed once (prober-9)")
		m.Remove("u")

		m.Add(p)
		other := pod("v", container("c", "R", nil))
		m.Add(other)
		_ = m.Retain(t.Context(), func(uid types.UID) bool { return uid == "v" })
		assert.Equal(t, []string{"c Readiness"}, m.Workers(), "prober-76")
		assert.NotNil(t, m.Results(p), "it is not probed, but has results (prober-61)")
		m.StopLiveness(p)
		m.Trigger("unknown")
		m.Inspect("unknown")
	})
}

func TestInitialDelay(t *testing.T) { // prober-19: it counts from the start of the instance
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		m, stop := n.manager(prober.Config{})
		defer stop()
		p := pod("u", container("web", "RL", func(p *v1.Probe) { p.InitialDelaySeconds = 7 }))
		n.starts("u", "web", "1")
		time.Sleep(2 * time.Second)
		m.Add(p)
		m.Trigger("u")
		time.Sleep(10 * time.Second)
		assert.Equal(t, []string{"7s web Liveness 1", "7s web Readiness 1"}, n.take(&n.runs))
	})
}

func TestAContainerThatStartsInTheFutureIsProbed(t *testing.T) { // the clock was set back
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		m, stop := n.manager(prober.Config{})
		defer stop()
		n.set("u", runtime.ContainerStatus{ID: "1", Name: "web", State: runtime.ContainerRunning, StartedAt: time.Now().Add(time.Hour)})
		m.Add(pod("u", container("web", "R", func(p *v1.Probe) { p.InitialDelaySeconds = 7 })))
		time.Sleep(8 * time.Second)
		assert.Equal(t, []string{"7s web Readiness 1"}, n.take(&n.runs))
	})
}

func TestATriggerRunsAtOnceAndStartsThePeriodOver(t *testing.T) { // prober-8, prober-68
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		m, stop := n.manager(prober.Config{})
		defer stop()
		n.starts("u", "web", "1")
		m.Add(pod("u", container("web", "RL", nil)))
		time.Sleep(14 * time.Second)
		n.take(&n.runs)
		n.say("web/Readiness", answer{Outcome: success.Outcome, takes: 500 * time.Millisecond})
		m.Trigger("u")
		time.Sleep(11 * time.Second)
		assert.Equal(t, []string{"14s web Readiness 1", "20s web Liveness 1", "24s web Readiness 1"}, n.take(&n.runs))
		time.Sleep(9100 * time.Millisecond) // 34.1 s: it runs
		n.take(&n.runs)
		m.Trigger("u")
		m.Trigger("u")
		time.Sleep(time.Second)
		assert.Equal(t, []string{"34.5s web Readiness 1"}, n.take(&n.runs), "while it ran: once more after it")
	})
}

func TestARunThatTakesLongerThanThePeriodDelaysNoOther(t *testing.T) { // prober-7
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		m, stop := n.manager(prober.Config{})
		defer stop()
		n.starts("u", "slow", "1")
		n.starts("u", "web", "2")
		n.say("slow", answer{Outcome: success.Outcome, takes: 2500 * time.Millisecond})
		every := func(p *v1.Probe) { p.PeriodSeconds, p.TimeoutSeconds = 1, 5 }
		m.Add(pod("u", container("slow", "R", every), container("web", "R", every)))
		time.Sleep(5500 * time.Millisecond)
		assert.Equal(t, []string{
			"0s slow Readiness 1", "0s web Readiness 2", "1s web Readiness 2", "2s web Readiness 2", "2.5s slow Readiness 1",
			"3s web Readiness 2", "4s web Readiness 2", "5s slow Readiness 1", "5s web Readiness 2",
		}, n.take(&n.runs), "the next follows at once, and those that were missed are not made up for")
	})
}

func TestPeriodsBelowASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		m, stop := n.manager(prober.Config{Schedule: prober.Schedule{
			Rand: rand.New(rand.NewPCG(1, 2)).Float64,
			Timing: func(p *v1.Pod, container string, k prober.Kind, in prober.Timing) prober.Timing {
				require.Equal(t, 10*time.Second, in.Period)
				in.Period, in.Timeout = 100*time.Millisecond, 50*time.Millisecond
				return in
			},
		}})
		defer stop()
		n.starts("u", "web", "1")
		m.Add(pod("u", container("web", "L", nil)))
		time.Sleep(time.Second)
		for range 20 {
			n.take(&n.runs)
			time.Sleep(time.Second)
			assert.InDelta(t, 10, len(n.take(&n.runs)), 1)
		}
	})
}

// prober-6: of 1,000 probes that begin together, the variance of the number of runs
// that begin in a second is at most twice the mean. Probes that no caller waits for
// are spread from the first run on, readiness from the second.
func TestProbesThatBeginTogetherAreSpread(t *testing.T) {
	for _, kind := range all {
		for _, restarted := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				const pods, periods = 1000, 6
				n := newNode(t)
				for i := range pods {
					n.starts(types.UID(fmt.Sprint(i)), "web", fmt.Sprint("id-", i))
				}
				if restarted {
					time.Sleep(time.Hour)
				}
				n.say("web", failure)
				var mu sync.Mutex // several goroutines draw
				random := rand.New(rand.NewPCG(6, 4))
				m, stop := n.manager(prober.Config{Limits: prober.Limits{Parallel: pods}, Schedule: prober.Schedule{Rand: func() float64 {
					mu.Lock()
					defer mu.Unlock()
					return random.Float64()
				}}})
				defer stop()
				for i := range pods {
					p := pod(types.UID(fmt.Sprint(i)), container("web", kind.String()[:1], func(p *v1.Probe) { p.FailureThreshold = 1000 }))
					m.Add(p)
				}
				began := time.Since(n.began)
				time.Sleep(10 * periods * time.Second)
				buckets := make([]float64, 10*periods+1)
				for _, r := range n.take(&n.runs) {
					at, err := time.ParseDuration(strings.Fields(r)[0])
					require.NoError(t, err)
					buckets[int((at-began)/time.Second)]++
				}
				if kind == prober.Readiness && !restarted {
					require.GreaterOrEqual(t, buckets[0], float64(pods), "the first run is not delayed")
					buckets[0] -= pods
				}
				buckets = buckets[:10*periods]
				var sum, squares float64
				for _, b := range buckets {
					sum += b
				}
				mean := sum / float64(len(buckets))
				for _, b := range buckets {
					squares += (b - mean) * (b - mean)
				}
				variance := squares / float64(len(buckets))
				t.Logf("%v, restarted %v: mean %.1f, variance %.1f", kind, restarted, mean, variance)
				assert.InDelta(t, pods/10, mean, 10)
				assert.LessOrEqual(t, variance, 2*mean)
			})
		}
	}
}

// Whatever the spread and the jitter, a container has at least the time to start, or
// to recover, that its thresholds and periods allow.
func TestSpreadTakesNoTimeFromAContainer(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			n := newNode(t)
			random := rand.New(rand.NewPCG(seed, 0))
			m, stop := n.manager(prober.Config{Schedule: prober.Schedule{Rand: random.Float64, Jitter: 0.5}})
			defer stop()
			n.say("web", failure)
			n.starts("u", "web", "1")
			m.Add(pod("u", container("web", "L", func(p *v1.Probe) { p.FailureThreshold = 5 })))
			time.Sleep(time.Minute)
			runs := n.take(&n.runs)
			require.Len(t, runs, 5)
			var at []float64
			for _, r := range runs {
				d, err := time.ParseDuration(strings.Fields(r)[0])
				require.NoError(t, err)
				at = append(at, d.Seconds())
			}
			assert.GreaterOrEqual(t, slices.Max(at)-slices.Min(at), 40.0, "seed %d: %v", seed, at)
			assert.Less(t, slices.Max(at), 55.0+math.SmallestNonzeroFloat64, "seed %d: %v", seed, at)
		})
	}
}
