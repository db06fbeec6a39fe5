package plan_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/internal/restart"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// dice makes choices from bytes, so that the same laws can be checked with
// random bytes and with those a fuzzer makes up. Out of bytes it throws 0.
type dice struct{ bytes []byte }

func (d *dice) n(sides int) int {
	if len(d.bytes) == 0 {
		return 0
	}
	b := d.bytes[0]
	d.bytes = d.bytes[1:]
	return int(b) % sides
}

func pick[T any](d *dice, of ...T) T { return of[d.n(len(of))] }

// randomPod returns a scene with a pod and nothing in the runtime.
func randomPod(t testing.TB, d *dice) *scene {
	s := newScene(t, "")
	spec := &s.pod.Spec
	spec.RestartPolicy = pick(d, v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever)
	container := func(name string) v1.Container {
		c := v1.Container{Name: name, Image: "nginx:1"}
		if d.n(3) == 0 {
			c.RestartPolicy = new(pick(d, v1.ContainerRestartPolicyAlways, v1.ContainerRestartPolicyOnFailure, v1.ContainerRestartPolicyNever))
			if d.n(3) == 0 {
				c.RestartPolicyRules = []v1.ContainerRestartRule{{
					Action: v1.ContainerRestartRuleActionRestart,
					ExitCodes: &v1.ContainerRestartRuleOnExitCodes{
						Operator: pick(d, v1.ContainerRestartRuleOnExitCodesOpIn, v1.ContainerRestartRuleOnExitCodesOpNotIn),
						Values:   []int32{1},
					},
				}}
			}
		}
		return c
	}
	for _, name := range []string{"i0", "i1", "i2"}[:d.n(4)] {
		spec.InitContainers = append(spec.InitContainers, container(name))
	}
	for _, name := range []string{"c0", "c1"}[:1+d.n(2)] {
		spec.Containers = append(spec.Containers, container(name))
	}
	for _, name := range []string{"e0"}[:d.n(2)] {
		spec.EphemeralContainers = append(spec.EphemeralContainers, v1.EphemeralContainer{
			EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: name, Image: "nginx:1"},
		})
	}
	return s
}

// randomScene returns a pod and a runtime that holds anything of it, sensible
// or not.
func randomScene(t testing.TB, d *dice) *scene {
	s := randomPod(t, d)
	if d.n(8) == 0 {
		s.pod.DeletionTimestamp = new(metav1.NewTime(epoch))
	}
	ids := []string{"gone"}
	for i, id := range []string{"s0", "s1", "s2"}[:d.n(4)] {
		ids = append(ids, id, id)
		sb := runtime.SandboxStatus{ID: id, Attempt: uint32(i), NetworkKnown: d.n(2) == 0}
		// The newest is fine more often than not, so that the rest is seen.
		sb.State = pick(d, runtime.SandboxReady, runtime.SandboxReady, runtime.SandboxNotReady, runtime.SandboxUnknown)
		sb.HostNetwork = d.n(8) == 1
		if d.n(8) != 1 {
			sb.IPs = []string{"10.0.0.1"}
		}
		s.status.Sandboxes = slices.Insert(s.status.Sandboxes, 0, sb)
	}
	for _, name := range s.names() {
		for i := range d.n(4) {
			inst := runtime.ContainerStatus{
				ID: name + string(rune('a'+i)), Name: name, SandboxID: pick(d, ids...),
				State:        pick(d, runtime.ContainerRunning, runtime.ContainerExited, runtime.ContainerExited, runtime.ContainerCreated, runtime.ContainerUnknown),
				RestartCount: int32(pick(d, i, i, i, d.n(9))),
				Hash:         pick(d, plan.Hash(s.spec(name)), plan.Hash(s.spec(name)), 0, 77),
				CreatedAt:    epoch,
			}
			if inst.State == runtime.ContainerExited {
				inst.ExitCode = int32(d.n(3))
				inst.FinishedAt = epoch.Add(time.Duration(d.n(200)) * time.Second)
				inst.Reason = pick(d, "", "", "OOMKilled")
			}
			s.status.Containers = append(s.status.Containers, inst)
		}
	}
	// A runtime whose clock was set may list them in any order.
	for i := range s.status.Containers {
		j := d.n(i + 1)
		s.status.Containers[i], s.status.Containers[j] = s.status.Containers[j], s.status.Containers[i]
	}
	s.now = epoch.Add(time.Duration(d.n(200)) * time.Second)
	return s
}

// sort puts the instances in an order that can be true: those of newer
// sandboxes first.
func (s *scene) sort() {
	age := func(inst runtime.ContainerStatus) int {
		i := slices.IndexFunc(s.status.Sandboxes, func(sb runtime.SandboxStatus) bool { return sb.ID == inst.SandboxID })
		if i < 0 {
			return len(s.status.Sandboxes)
		}
		return i
	}
	slices.SortStableFunc(s.status.Containers, func(a, b runtime.ContainerStatus) int { return age(a) - age(b) })
}

func (s *scene) names() []string {
	var names []string
	for _, c := range s.pod.Spec.InitContainers {
		names = append(names, c.Name)
	}
	for _, c := range s.pod.Spec.Containers {
		names = append(names, c.Name)
	}
	for _, c := range s.pod.Spec.EphemeralContainers {
		names = append(names, c.Name)
	}
	return names
}

// checkPlan checks what holds of any one plan, and returns it.
func checkPlan(t testing.TB, s *scene) plan.Plan {
	t.Helper()
	pod, status := s.pod.DeepCopy(), cloneStatus(s.status)
	p := s.plan()
	require.Equal(t, pod, s.pod, "inv-15: the pod is not changed")
	require.Equal(t, status, s.status, "inv-15: the status is not changed")
	require.Equal(t, p, s.plan(), "inv-15: same input, same plan")
	require.NotEmpty(t, p.String())

	stopped := make(map[string]bool)
	for _, k := range p.Kill {
		require.False(t, stopped[k.ID], "stopped once")
		stopped[k.ID] = true
		require.Equal(t, k.Name, s.instance(k.ID).Name)
		require.NotEmpty(t, k.Reason)
		require.NotEmpty(t, k.Message)
	}
	if p.KillPod {
		require.Empty(t, p.Kill)
		require.NotEmpty(t, p.KillReason)
	}
	if p.KillPod && !p.CreateSandbox || s.pod.DeletionTimestamp != nil {
		require.Empty(t, p.Start, "rt-31, rt-50")
	}
	if s.pod.DeletionTimestamp != nil {
		require.False(t, p.CreateSandbox, "rt-31")
	}
	if len(p.Start) > 0 {
		require.True(t, p.CreateSandbox != (p.SandboxID != ""), "there is a sandbox, or one is made")
	}
	started := make(map[string]bool)
	for _, st := range p.Start {
		require.Equal(t, s.status.Container(st.Name) == nil, st.NoStatus)
		require.False(t, started[st.Name], "started once")
		started[st.Name] = true
		require.Same(t, s.spec(st.Name), st.Container)
		require.NotEmpty(t, st.Why)
		for i := range s.status.Containers {
			inst := &s.status.Containers[i]
			if inst.Name != st.Name {
				continue
			}
			if inst.State == runtime.ContainerRunning {
				require.True(t, p.KillPod || stopped[inst.ID], "%s is started while %s runs", st.Name, inst.ID)
			}
			if st.Resume == "" {
				require.Greater(t, st.RestartCount, inst.RestartCount, "inv-10")
			} else {
				require.GreaterOrEqual(t, st.RestartCount, inst.RestartCount, "inv-10")
			}
		}
		if st.Resume != "" {
			require.Equal(t, runtime.ContainerCreated, s.instance(st.Resume).State)
			require.Equal(t, p.SandboxID, s.instance(st.Resume).SandboxID)
			require.False(t, st.PutOff())
		}
	}
	return p
}

// checkRest carries plans out, with init containers that succeed, until there
// is nothing to do (inv-16).
func checkRest(t testing.TB, s *scene) {
	t.Helper()
	s.backoff = nil
	rounds := len(s.pod.Spec.InitContainers) + 2
	if s.untidy() {
		rounds++ // what no well-behaved runtime shows is put in order first
	}
	before := cloneStatus(s.status)
	var said []string
	for {
		p := checkPlan(t, s)
		said = append(said, p.String())
		s.apply(p)
		waited := false
		for i := range s.pod.Spec.InitContainers {
			c := &s.pod.Spec.InitContainers[i]
			for j := range s.status.Containers {
				inst := &s.status.Containers[j]
				if inst.Name == c.Name && inst.State == runtime.ContainerRunning && !restart.Sidecar(c) {
					s.exit(inst, 0)
					waited = true
				}
			}
		}
		if p.Empty() && !waited {
			return
		}
		if !p.Empty() {
			require.Positive(t, rounds, "inv-16: comes to rest\n%+v\n%s", before, strings.Join(said, "\n--\n"))
			rounds--
		}
	}
}

// untidy reports whether the runtime shows what the engine would never have made
// of it: an instance it lost track of, or one that runs in a former sandbox.
func (s *scene) untidy() bool {
	for _, inst := range s.status.Containers {
		former := len(s.status.Sandboxes) == 0 || inst.SandboxID != s.status.Sandboxes[0].ID
		if inst.State == runtime.ContainerUnknown || inst.State == runtime.ContainerRunning && former {
			return true
		}
	}
	return false
}

// checkOrder checks that what p starts for the first time in its sandbox had to
// wait for nothing: each init container before it has succeeded or, a sidecar,
// has been started in that sandbox. It holds where nothing but plans starts
// containers.
func checkOrder(t testing.TB, s *scene, p plan.Plan) {
	t.Helper()
	inSandbox := func(name string) *runtime.ContainerStatus {
		for i := range s.status.Containers {
			if inst := &s.status.Containers[i]; inst.Name == name && inst.SandboxID == p.SandboxID {
				return inst
			}
		}
		return nil
	}
	for _, st := range p.Start {
		if st.Kind == plan.Ephemeral || inSandbox(st.Name) != nil {
			continue
		}
		for i := range s.pod.Spec.InitContainers {
			before := &s.pod.Spec.InitContainers[i]
			if before.Name == st.Name {
				break
			}
			inst := inSandbox(before.Name)
			require.NotNil(t, inst, "%s starts before %s", st.Name, before.Name)
			if !restart.Sidecar(before) {
				require.True(t, inst.State == runtime.ContainerExited && inst.ExitCode == 0, "%s starts before %s is done", st.Name, before.Name)
			}
		}
	}
}

// live runs a pod from its beginning through anything that can happen to it.
func live(t testing.TB, d *dice, steps int) {
	t.Helper()
	s := randomPod(t, d)
	for range steps {
		p := checkPlan(t, s)
		checkOrder(t, s, p)
		s.apply(p)
		s.now = s.now.Add(time.Duration(d.n(30)) * time.Second)
		for i := range s.status.Containers {
			inst := &s.status.Containers[i]
			if inst.State != runtime.ContainerRunning {
				continue
			}
			switch d.n(8) {
			case 1, 2:
				s.exit(inst, int32(d.n(3)))
			case 3:
				inst.State = runtime.ContainerUnknown
			case 4:
				inst.State, inst.StartedAt = runtime.ContainerCreated, time.Time{}
			}
		}
		switch d.n(16) {
		case 1:
			s.status.Sandboxes[0].State = runtime.SandboxNotReady
		case 2:
			s.forget(t)
		case 3:
			s.pod.Spec.Containers[0].Image += "1"
		}
		if len(s.status.Sandboxes) == 0 {
			return
		}
	}
}

func TestLawsHoldOfRandomPods(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 300 {
		d := &dice{bytes: make([]byte, 300)}
		for i := range d.bytes {
			d.bytes[i] = byte(rng.Uint32())
		}
		laws(t, d.bytes)
	}
}

// laws checks everything with the choices in data.
func laws(t testing.TB, data []byte) {
	defer func() {
		if t.Failed() {
			t.Logf("choices: %v", data)
		}
	}()
	s := randomScene(t, &dice{bytes: data})
	checkPlan(t, s)
	s.sort()
	checkRest(t, s)
	live(t, &dice{bytes: data}, 20)
}

func FuzzCompute(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("some bytes to begin with, and some more of them"))
	f.Fuzz(func(t *testing.T, data []byte) { laws(t, data) })
}

func cloneStatus(s *runtime.PodStatus) *runtime.PodStatus {
	c := *s
	c.Sandboxes = slices.Clone(s.Sandboxes)
	c.Containers = slices.Clone(s.Containers)
	return &c
}
