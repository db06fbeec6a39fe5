package plan_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/seedrun"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// crash exits the running instance of web after run, waits until the plan starts it
// again, starts it, and returns the delay.
func (s *model) crash(t *testing.T, run time.Duration) time.Duration {
	t.Helper()
	inst := s.status.Container("web")
	require.Equal(t, runtime.ContainerRunning, inst.State)
	s.now = s.now.Add(run)
	s.exit(inst, 1)
	died := s.now
	p := s.plan()
	require.Len(t, p.Start, 1)
	if p.Start[0].InBackoff() {
		require.False(t, p.Empty(), "a delayed start is part of the plan")
		s.now = p.RetryAt().Add(-time.Nanosecond)
		require.True(t, s.plan().Start[0].InBackoff(), "not due 1 ns earlier")
		s.now = p.RetryAt()
		p = s.plan()
	}
	require.False(t, p.Start[0].InBackoff())
	s.apply(p)
	return s.now.Sub(died)
}

const running = `
	container web
	sandbox s0
	has web#0 running`

func TestBackoffSequence(t *testing.T) { // rt-91
	s := newModel(t, running)
	var waits []time.Duration
	for range 9 {
		waits = append(waits, s.crash(t, time.Second)/time.Second)
	}
	assert.Equal(t, []time.Duration{0, 10, 20, 40, 80, 160, 300, 300, 300}, waits)
}

func TestBackoffIsForContainersOfAllKinds(t *testing.T) { // rt-88
	const crashed = "exited=1 ran=-5..0"
	for name, text := range map[string]string{
		"start i#3(Exited) at 20": "init i\ncontainer web\nsandbox s0\nhas i#2 " + crashed,
		"start s#3(Exited) at 20": "init s policy=Always\ncontainer web\nsandbox s0\nhas web#0 running\nhas s#2 " + crashed,
		"start c#3(Exited) at 20": "container c\nsandbox s0\nhas c#2 " + crashed,
		// The delay counts from the newest exit, even if a newer instance is in state unknown.
		"kill u-3(UnknownState); start u#4(UnknownState) at 20": "container u\nsandbox s0\nhas u#2 " + crashed + "\nhas u#3 unknown",
	} {
		p := newModel(t, text).plan()
		assert.Equal(t, name, brief(p))
		assert.Equal(t, epoch.Add(20*time.Second), p.RetryAt(), "rt-94")
	}
}

func TestBackoffBeginsAgainAfterALongRun(t *testing.T) { // rt-92
	s := newModel(t, running)
	for range 4 {
		s.crash(t, time.Second)
	}
	assert.Equal(t, 80*time.Second, s.crash(t, 600*time.Second), "600 s is not more than 600 s")
	assert.Zero(t, s.crash(t, 600*time.Second+1))
	assert.Equal(t, 10*time.Second, s.crash(t, time.Second))
}

func TestBackoffBeginsAgainWithAnotherImageOrOtherResources(t *testing.T) { // rt-89
	for name, change := range map[string]func(*v1.Container){
		"image": func(c *v1.Container) { c.Image = "nginx:2" },
		"resources": func(c *v1.Container) {
			c.Resources.Limits = v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}
		},
	} {
		s := newModel(t, running)
		for range 4 {
			s.crash(t, time.Second)
		}
		s.now = s.now.Add(time.Second)
		s.exit(s.status.Container("web"), 1)
		require.Equal(t, 80*time.Second, s.plan().Start[0].Delay)
		change(&s.pod.Spec.Containers[0])
		p := s.plan()
		require.False(t, p.Start[0].InBackoff(), name)
		s.apply(p)
		assert.Equal(t, 10*time.Second, s.crash(t, time.Second), name)
	}
}

func TestBackoffPunishesSuccessLikeFailure(t *testing.T) { // rt-95
	s := newModel(t, running)
	s.crash(t, time.Second)
	s.exit(s.status.Container("web"), 0)
	assert.Equal(t, 10*time.Second, s.plan().Start[0].Delay)
}

func TestBackoffIsPerContainer(t *testing.T) {
	s := newModel(t, `
		container web
		container log
		sandbox s0
		has web#0 running
		has log#0 running`)
	s.crash(t, time.Second)
	assert.Equal(t, 10*time.Second, s.crash(t, time.Second))
	s.exit(s.status.Container("log"), 1)
	assert.False(t, s.plan().Start[0].InBackoff(), "log has not crashed before")
}

func TestBackoffMessages(t *testing.T) { // rt-90
	s := newModel(t, running)
	for range 4 {
		s.crash(t, time.Second)
	}
	s.exit(s.status.Container("web"), 1)
	st := s.plan().Start[0]
	assert.Equal(t, "back-off 1m20s restarting failed container=web pod=shop_default(u1)", st.BackoffMessage(s.pod))
	assert.Equal(t, "Back-off restarting failed container web in pod shop_default(u1)", st.BackoffEvent(s.pod))
}

func TestBackoffConfig(t *testing.T) {
	_, err := plan.NewBackoff(plan.BackoffConfig{Max: -1})
	require.EqualError(t, err, "plan: BackoffConfig.Max is negative: -1ns")

	s := newModel(t, running)
	s.backoff, err = plan.NewBackoff(plan.BackoffConfig{Max: 4 * time.Second}) // rt-93
	require.NoError(t, err)
	assert.Zero(t, s.crash(t, time.Second))
	assert.Equal(t, 4*time.Second, s.crash(t, time.Second))
	assert.Equal(t, 4*time.Second, s.crash(t, time.Second))

	s = newModel(t, running)
	s.backoff = nil
	assert.Zero(t, s.crash(t, time.Second))
	assert.Zero(t, s.crash(t, time.Second), "no delay without a table")
	s.backoff.Forget(s.pod.UID)
}

func TestBackoffConfigIsChecked(t *testing.T) {
	for want, cfg := range map[string]plan.BackoffConfig{
		"plan: BackoffConfig.Initial is negative: -1ns": {Initial: -1},
		"plan: BackoffConfig.Reset is negative: -1s":    {Reset: -time.Second},
		"plan: BackoffConfig.Factor is below 1: 0.5":    {Factor: 0.5},
		"plan: BackoffConfig.Factor is below 1: NaN":    {Factor: math.NaN()},
	} {
		_, err := plan.NewBackoff(cfg)
		assert.EqualError(t, err, want)
	}
}

// with gives the model a back-off table with the given config.
func (s *model) with(t *testing.T, cfg plan.BackoffConfig) *model {
	t.Helper()
	var err error
	s.backoff, err = plan.NewBackoff(cfg)
	require.NoError(t, err)
	return s
}

func TestBackoffGrowsByItsFactor(t *testing.T) {
	for _, tc := range []struct {
		factor float64
		want   []time.Duration
	}{
		{1, []time.Duration{0, 10, 10, 10, 10}},
		{1.5, []time.Duration{0, 10, 15, 22500 * time.Millisecond / time.Second, 33}},
		{10, []time.Duration{0, 10, 100, 300, 300}},
		{math.Inf(1), []time.Duration{0, 10, 300, 300, 300}},
	} {
		s := newModel(t, running).with(t, plan.BackoffConfig{Factor: tc.factor})
		var waits []time.Duration
		for range tc.want {
			waits = append(waits, s.crash(t, time.Second)/time.Second)
		}
		assert.Equal(t, tc.want, waits, tc.factor)
	}
}

func TestBackoffOfTheReducedMaximum(t *testing.T) { // KEP-4603: 1 s to 60 s
	s := newModel(t, running).with(t, plan.BackoffConfig{Initial: time.Second, Max: time.Minute})
	var waits []time.Duration
	for range 9 {
		waits = append(waits, s.crash(t, time.Second)/time.Second)
	}
	assert.Equal(t, []time.Duration{0, 1, 2, 4, 8, 16, 32, 60, 60}, waits)
}

func TestBackoffMayExemptSuccess(t *testing.T) { // rt-95
	s := newModel(t, running).with(t, plan.BackoffConfig{ExemptSuccess: true})
	for range 3 {
		s.crash(t, time.Second)
	}
	s.exit(s.status.Container("web"), 0)
	p := s.plan()
	require.Equal(t, "start web#4(Exited)", brief(p), "a success is not delayed")
	s.apply(p)
	assert.Zero(t, s.crash(t, time.Second), "the sequence starts from the beginning")
	assert.Equal(t, 10*time.Second, s.crash(t, time.Second))

	for name, text := range map[string]string{
		"start web#6(Exited)":       `has web#5 exited=0 ran=-5..0`,
		"start web#7(Exited)":       "has web#5 exited=0 ran=-9..-6\nhas web#6 exited=1 ran=-5..0",
		"start web#8(Exited) at 10": "has web#5 exited=0 ran=-9..-6\nhas web#6 exited=1 ran=-5..-3\nhas web#7 exited=1 ran=-2..0",
	} {
		s := newModel(t, "container web\nsandbox s0\n"+text).with(t, plan.BackoffConfig{ExemptSuccess: true})
		assert.Equal(t, name, brief(s.plan()), "derived")
	}
}

func TestBackoffMayDifferByContainer(t *testing.T) {
	s := newModel(t, `
		container web
		container log
		container app
		sandbox s0
		has app#5 exited=1 ran=-5..0
		has log#5 exited=1 ran=-5..0
		has web#5 exited=1 ran=-5..0`)
	s.with(t, plan.BackoffConfig{ForContainer: func(pod *v1.Pod, c *v1.Container) *plan.BackoffConfig {
		assert.Equal(t, "shop", pod.Name)
		switch c.Name {
		case "web":
			return &plan.BackoffConfig{Max: 2 * time.Second}
		case "log":
			return &plan.BackoffConfig{Initial: -1, Max: -5, Reset: -1, Factor: -3} // nonsense is as if unsaid
		default:
			return nil
		}
	}})
	assert.Equal(t, "start web#6(Exited) at 2; start log#6(Exited) at 160; start app#6(Exited) at 160", brief(s.plan()))
}

func TestBackoffMayForgetWithTheAgent(t *testing.T) { // rt-96, lq-29
	s := newModel(t, running).with(t, plan.BackoffConfig{Forgetful: true})
	for range 4 {
		s.crash(t, time.Second)
	}
	s.exit(s.status.Container("web"), 1)
	require.True(t, s.plan().Start[0].InBackoff())
	s.with(t, plan.BackoffConfig{Forgetful: true})
	assert.False(t, s.plan().Start[0].InBackoff())
}

func TestBackoffIsReset(t *testing.T) {
	for _, name := range []string{"web", ""} {
		s := newModel(t, running)
		for range 4 {
			s.crash(t, time.Second)
		}
		s.now = s.now.Add(time.Second)
		s.exit(s.status.Container("web"), 1)
		require.True(t, s.plan().Start[0].InBackoff())
		s.backoff.Reset(s.pod.UID, "other", s.now)
		s.backoff.Reset("u2", "", s.now)
		require.True(t, s.plan().Start[0].InBackoff(), "others were reset")

		s.backoff.Reset(s.pod.UID, name, s.now)
		p := s.plan()
		require.False(t, p.Start[0].InBackoff())
		s.now = s.now.Add(time.Second)
		s.apply(p)
		assert.Equal(t, 10*time.Second, s.crash(t, time.Second), "it begins again")
		assert.Equal(t, 20*time.Second, s.crash(t, time.Second))
	}
	// A reset back-off stays reset when the next instance is stopped (rt-97).
	s := newModel(t, running)
	for range 4 {
		s.crash(t, time.Second)
	}
	s.exit(s.status.Container("web"), 1)
	s.backoff.Reset(s.pod.UID, "web", s.now)
	s.now = s.now.Add(time.Second)
	s.apply(s.plan())
	s.probed().Liveness[s.status.Container("web").ID] = runtime.ProbeFailure
	require.False(t, s.plan().Start[0].InBackoff())

	// A back-off that is derived from the instances is reset, too.
	s = newModel(t, `
		container web
		sandbox s0
		has web#7 exited=1 ran=-90..-80
		has web#8 exited=1 ran=-50..-40
		has web#9 exited=1 ran=-5..0`)
	s.backoff.Reset(s.pod.UID, "", epoch.Add(-60*time.Second))
	assert.Equal(t, "start web#10(Exited) at 20", brief(s.plan()))
	s.backoff.Reset(s.pod.UID, "web", epoch)
	assert.Equal(t, "start web#10(Exited)", brief(s.plan()))
}

func TestBackoffCountsAStartOnce(t *testing.T) {
	s := newModel(t, running)
	s.crash(t, time.Second)
	s.exit(s.status.Container("web"), 1)
	s.now = s.now.Add(10 * time.Second)
	p := s.plan()
	s.backoff.Started(s.pod, p.Start[0], s.now)
	s.apply(p)
	assert.Equal(t, 20*time.Second, s.crash(t, time.Second))
}

func TestBackoffDoesNotDelayAnInstanceThatIsResumed(t *testing.T) {
	s := newModel(t, running)
	for range 4 {
		s.crash(t, time.Second)
	}
	inst := s.status.Container("web") // its start succeeded, but the response was lost
	inst.State, inst.StartedAt = runtime.ContainerCreated, time.Time{}
	p := s.plan()
	assert.Equal(t, "resume "+inst.ID+"(Created)", brief(p))
	s.apply(p)
	s.backoff.Started(s.pod, p.Start[0], s.now)
	assert.Equal(t, 80*time.Second, s.crash(t, time.Second), "resuming is not a start")
}

func TestBackoffIsNotHeldByAClockThatWasSetBack(t *testing.T) {
	s := newModel(t, running)
	s.crash(t, time.Second)
	s.exit(s.status.Container("web"), 1)
	require.True(t, s.plan().Start[0].InBackoff())
	s.now = s.now.Add(-24 * time.Hour)
	assert.False(t, s.plan().Start[0].InBackoff())
}

func TestBackoffAfterARestartOfTheAgent(t *testing.T) { // lq-29
	const setup = `
		container web
		sandbox s0
		`
	for _, tc := range []struct{ name, instances, want string }{
		{"first exit", `has web#0 exited=1 ran=-5..0`, "start web#1(Exited)"},
		{"second", `has web#1 exited=1 ran=-5..0`, "start web#2(Exited) at 10"},
		{"fourth", `has web#3 exited=1 ran=-5..0`, "start web#4(Exited) at 40"},
		{"many", `has web#1000000 exited=1 ran=-5..0`, "start web#1000001(Exited) at 300"},
		{"the back-off has ended", `has web#3 exited=1 ran=-50..-40`, "start web#4(Exited)"},
		{"after a long run", `has web#9 exited=1 ran=-605..-4`, "start web#10(Exited)"},
		{"after a crash after a long run", `
			has web#8 exited=1 ran=-800..-10
			has web#9 exited=1 ran=-5..0`, "start web#10(Exited) at 10"},
		{"with another image", `has web#9 exited=1 ran=-5..0 made=nginx:0`, "start web#10(Exited)"},
		{"with another image before", `
			has web#7 exited=1 ran=-10..-9 made=nginx:0
			has web#8 exited=1 ran=-8..-7
			has web#9 exited=1 ran=-5..0`, "start web#10(Exited) at 20"},
		{"with an unknown hash", `has web#2 exited=1 ran=-5..0 nohash`, "start web#3(Exited) at 20"},
	} {
		assert.Equal(t, tc.want, brief(newModel(t, setup+tc.instances).plan()), tc.name)
	}
}

// If the runtime still has every instance, the derived delay equals that of the lost
// table; if it has only the last instance, the derived delay is not shorter.
func TestBackoffDerivesMissingEntries(t *testing.T) {
	seed := seedrun.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 50 {
		s := newModel(t, running)
		for range 12 {
			run := time.Duration(rng.IntN(5)) * time.Second
			if rng.IntN(5) == 0 {
				run = time.Duration(500+rng.IntN(300)) * time.Second
			}
			s.crash(t, run)
			died := *s
			status := *s.status
			status.Containers = append([]runtime.ContainerStatus(nil), s.status.Containers...)
			died.status = &status
			died.now = s.now.Add(time.Second)
			died.exit(died.status.Container("web"), 1)
			want := died.plan().Start[0]

			died.forget(t)
			got := died.plan().Start[0]
			require.Equal(t, []any{want.Delay, want.NotBefore}, []any{got.Delay, got.NotBefore})

			died.status.Containers = died.status.Containers[:1]
			require.GreaterOrEqual(t, died.plan().Start[0].Delay, want.Delay)
		}
	}
}

// Earlier instances that are known only by their number do not count as crashes.
func TestBackoffCountsFromTheFirstInstance(t *testing.T) {
	for name, tc := range map[string]struct {
		count, first int32
		want         time.Duration
	}{
		"all are counted":      {count: 3, want: 40 * time.Second},
		"the first one":        {count: 3, first: 3},
		"the second one":       {count: 4, first: 3, want: 10 * time.Second},
		"the third one":        {count: 5, first: 3, want: 20 * time.Second},
		"one before the first": {count: 2, first: 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := newModel(t, running)
			web := s.status.Container("web")
			web.RestartCount = tc.count
			s.exit(web, 1)
			s.forget(t)
			in := s.input()
			in.History.FirstRestartCounts = map[string]int32{"web": tc.first}
			p := plan.Compute(in)
			require.Len(t, p.Start, 1)
			assert.Equal(t, tc.want, p.Start[0].Delay)
			assert.Equal(t, tc.count+1, p.Start[0].RestartCount, "the count continues")
			assert.Equal(t, tc.count, web.RestartCount, "the status is not changed")
		})
	}
}

func TestBackoffForgets(t *testing.T) {
	s := newModel(t, running)
	s.crash(t, time.Second)
	s.crash(t, time.Second)
	s.exit(s.status.Container("web"), 1)
	s.status.Containers[0].RestartCount = 0 // derived, it would be the first
	require.True(t, s.plan().Start[0].InBackoff())
	s.backoff.Forget(s.pod.UID)
	assert.False(t, s.plan().Start[0].InBackoff())
}

func TestBackoffForgetsRemovedPods(t *testing.T) {
	s := newModel(t, running)
	s.crash(t, time.Second)
	s.crash(t, time.Second)
	s.exit(s.status.Container("web"), 1)
	s.status.Containers[0].RestartCount = 0 // derived, it would be the first
	s.backoff.Retain(func(uid types.UID) bool { return uid == s.pod.UID })
	require.True(t, s.plan().Start[0].InBackoff())
	s.backoff.Retain(func(uid types.UID) bool { return uid != s.pod.UID })
	assert.False(t, s.plan().Start[0].InBackoff())
}

func TestBackoffMayBeSharedByGoroutines(t *testing.T) {
	s := newModel(t, running)
	s.exit(s.status.Container("web"), 1)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			pod := s.pod.DeepCopy()
			pod.Name = fmt.Sprint(i) // another key for the same entry
			for range 100 {
				p := plan.Compute(plan.Input{Pod: pod, Status: s.status, Backoff: s.backoff, Now: s.now})
				s.backoff.Started(pod, p.Start[0], s.now)
				s.backoff.Forget(pod.UID)
			}
		})
	}
	wg.Wait()
}
