package runtimetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// epoch is when everything in these tables was created and started.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// words returns the step in words: "sandbox, kill memory://a-1, start a b".
func (s step) words() string {
	var out []string
	if s.stop {
		out = append(out, "stop")
	}
	if s.reset {
		out = append(out, "reset")
	}
	if s.sandbox {
		out = append(out, "sandbox")
	}
	if len(s.kill) > 0 {
		out = append(out, "kill "+strings.Join(s.kill, " "))
	}
	if len(s.start) > 0 {
		var names []string
		for _, st := range s.start {
			names = append(names, st.container.Name)
		}
		out = append(out, "start "+strings.Join(names, " "))
	}
	return strings.Join(out, ", ")
}

// see makes the status of a pod from words, oldest first: "ready" and "gone"
// are sandboxes, "a" is a container that runs in the last of them, "a=1" one
// that has exited with 1.
func see(words string) *runtime.PodStatus {
	s := &runtime.PodStatus{UID: "u"}
	sandbox := ""
	for i, word := range strings.Fields(words) {
		if word == "ready" || word == "gone" {
			sandbox = fmt.Sprintf("s%d", i)
			state := runtime.SandboxNotReady
			if word == "ready" {
				state = runtime.SandboxReady
			}
			s.Sandboxes = slices.Insert(s.Sandboxes, 0, runtime.SandboxStatus{ID: sandbox, State: state, Attempt: uint32(len(s.Sandboxes))})
			continue
		}
		name, code, exited := strings.Cut(word, "=")
		c := runtime.ContainerStatus{ID: fmt.Sprintf("%s.%d", name, i), Name: name, Image: "image", SandboxID: sandbox, State: runtime.ContainerRunning, CreatedAt: epoch, StartedAt: epoch}
		if exited {
			c.State, c.FinishedAt = runtime.ContainerExited, epoch
			fmt.Sscan(code, &c.ExitCode)
		}
		s.Containers = slices.Insert(s.Containers, 0, c)
	}
	return s
}

func TestDecide(t *testing.T) {
	const (
		always    = v1.RestartPolicyAlways
		onFailure = v1.RestartPolicyOnFailure
		never     = v1.RestartPolicyNever
	)
	// In wants, "i" and "j" are init containers, "s" and "z" sidecars, "e" is
	// ephemeral, others are regular.
	for _, tc := range []struct {
		name   string
		policy v1.RestartPolicy
		wants  string
		sees   string
		step   string
	}{
		{"a new pod", always, "a b", "", "sandbox, start a b"},
		{"a new pod with init containers (rt-44)", always, "i j a", "", "sandbox, start i"},
		{"all runs", always, "a b", "ready a b", ""},
		{"one was never started (rt-32)", always, "a b", "ready a", "start b"},
		{"exited, Always (rt-34)", always, "a b", "ready a b=0", "start b"},
		{"exited, OnFailure, failure", onFailure, "a b", "ready a b=3", "start b"},
		{"exited, OnFailure, success", onFailure, "a b", "ready a b=0", ""},
		{"exited, Never", never, "a b", "ready a b=3", ""},
		{"all final (rt-50)", never, "a b", "ready a=0 b=3", "stop"},
		{"all final, sidecars go too (rt-50)", never, "s a", "ready s a=0", "stop"},
		{"ephemeral containers keep nothing alive (rt-51)", never, "a e", "ready a=0 e", "stop"},
		{"the newest instance speaks (rt-10)", onFailure, "a b", "ready b a=0 a=1", "start a"},
		{"two run: the older one goes (lq-12)", always, "a", "ready a a", "kill a.1"},
		{"an older one runs, a newer one has exited (lq-12)", always, "a", "ready a a=1", ""},

		{"first init container runs (rt-59)", always, "i j a", "ready i", ""},
		{"first is done (rt-65)", always, "i j a", "ready i=0", "start j"},
		{"last is done (rt-65)", always, "i j a b", "ready i=0 j=0", "start a b"},
		{"init failed, Always (rt-64)", always, "i j a", "ready i=1", "start i"},
		{"init failed, Never (rt-64)", never, "i j a", "ready i=1", "stop"},
		{"an earlier one is missing (rt-69)", always, "i j a", "ready j=0", "start a"},
		{"none is seen, a regular one runs (rt-54)", always, "i j a", "ready a", ""},
		{"a regular one has exited, init is not run again", always, "i a", "ready i=0 a=1", "start a"},

		{"a sidecar runs, the next one starts (rt-61)", always, "s i a", "ready s", "start i"},
		{"a sidecar runs and is the last (rt-61)", always, "i s a", "ready i=0 s", "start a"},
		{"a sidecar has exited before the next (rt-63)", never, "s i a", "ready s=0", "start s"},
		{"a sidecar has exited while the pod runs (rt-63)", never, "s a", "ready s=0 a", "start s"},
		{"a sidecar is missing while the pod runs (rt-56)", always, "s z a", "ready z a", "start s"},
		{"an earlier sidecar has exited, the later init goes on", always, "s i a", "ready s=1 i=0", "start s a"},

		{"an ephemeral container, once (rt-45)", always, "i a e", "ready i", "start e"},
		{"an ephemeral container, not again (rt-45)", always, "a e", "ready a e=1", ""},

		{"the sandbox is gone, Always (rt-39)", always, "a b", "gone a=137 b=0", "sandbox, start a b"},
		{"the sandbox is gone, Never (rt-41)", never, "a b", "gone a=137 b=0", "stop"},
		{"the sandbox is gone, Never, but one is to go on (rt-41)", never, "a b+", "gone a=137 b=1", "sandbox, start b"},
		{"the sandbox is gone, Never, its init container failed (rt-41)", never, "i b+", "gone i=1 b=1", "stop"},
		{"the sandbox is gone, Never, nothing ever ran (rt-41)", never, "a", "gone", "sandbox, start a"},
		{"the sandbox is gone, OnFailure (rt-42)", onFailure, "a b", "gone a=137 b=0", "sandbox, start a"},
		{"the sandbox is gone, all succeeded (rt-43)", onFailure, "a b", "gone a=0 b=0", "stop"},
		{"the sandbox is gone, init anew (rt-44)", always, "i j a", "gone i=0 j=0 a=137", "sandbox, start i"},
		{"in the new sandbox, init goes on", always, "i j a", "gone i=0 j=0 a=137 ready i=0", "start j"},
		{"in the new sandbox, init is done", always, "i j a", "gone i=0 j=0 a=137 ready i=0 j=0", "start a"},
		{"the sandbox is gone, a container still runs", always, "a b", "gone a b=0", "sandbox, kill a.1, start a b"},

		{"new image (rt-30)", never, "a! b", "ready a b", "kill a.1, start a"},
		{"new image of a sidecar (rt-62)", always, "s! a", "ready s a", "kill s.1, start s"},
		{"restart all (rt-138)", never, "i a* b", "ready i=0 a=88 b", "reset, start i"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := decide(wantedPod(tc.policy, tc.wants), see(tc.sees), nil, 0)
			assert.Equal(t, tc.step, got.words())
		})
	}
}

// wantedPod makes a spec from words: "!" after a name is another image, "*" a
// rule that restarts all on exit code 88, "+" a policy Always of its own.
func wantedPod(policy v1.RestartPolicy, words string) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}, Spec: v1.PodSpec{RestartPolicy: policy}}
	for _, word := range strings.Fields(words) {
		c := v1.Container{Name: strings.TrimRight(word, "!*+"), Image: "image"}
		if strings.HasSuffix(word, "!") {
			c.Image = "another"
		}
		if strings.HasSuffix(word, "+") {
			c.RestartPolicy = new(v1.ContainerRestartPolicyAlways)
		}
		if strings.HasSuffix(word, "*") {
			c.RestartPolicy = new(v1.ContainerRestartPolicyNever)
			c.RestartPolicyRules = []v1.ContainerRestartRule{{
				Action:    v1.ContainerRestartRuleActionRestartAllContainers,
				ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{88}},
			}}
		}
		switch c.Name {
		case "s", "z":
			c.RestartPolicy = new(v1.ContainerRestartPolicyAlways)
			fallthrough
		case "i", "j":
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
		case "e":
			pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, v1.EphemeralContainer{
				EphemeralContainerCommon: v1.EphemeralContainerCommon(c),
			})
		default:
			pod.Spec.Containers = append(pod.Spec.Containers, c)
		}
	}
	return pod
}

func TestNothingIsStartedInAPodThatIsBeingDeleted(t *testing.T) { // rt-31
	pod := wantedPod(v1.RestartPolicyAlways, "i a")
	pod.DeletionTimestamp = &metav1.Time{Time: epoch}
	for _, sees := range []string{"", "ready", "ready i=0", "gone a=1"} {
		assert.Empty(t, decide(pod, see(sees), nil, 0).words(), sees)
	}
}

func TestProbesThatFailedRestart(t *testing.T) { // rt-48, rt-49, rt-60
	failed := func(ids ...string) map[string]runtime.ProbeResult {
		m := map[string]runtime.ProbeResult{}
		for _, id := range ids {
			m[id] = runtime.ProbeFailure
		}
		return m
	}
	for _, tc := range []struct {
		policy           v1.RestartPolicy
		liveness, starts map[string]runtime.ProbeResult
		want             string
	}{
		{v1.RestartPolicyAlways, nil, nil, ""},
		{v1.RestartPolicyAlways, failed("a.2"), nil, "kill a.2, start a"},
		{v1.RestartPolicyOnFailure, nil, failed("a.2"), "kill a.2, start a"},
		{v1.RestartPolicyNever, failed("a.2"), nil, "kill a.2"},
		{v1.RestartPolicyAlways, failed("s.1"), nil, "kill s.1, start s"},
	} {
		probes := &runtime.ProbeResults{Liveness: tc.liveness, Startup: tc.starts}
		assert.Equal(t, tc.want, decide(wantedPod(tc.policy, "s a b"), see("ready s a b"), probes, 0).words(), "%+v", tc)
	}

	pod := wantedPod(v1.RestartPolicyAlways, "s a")
	pod.Spec.InitContainers[0].StartupProbe = new(v1.Probe)
	for result, want := range map[runtime.ProbeResult]string{runtime.ProbeUnknown: "", runtime.ProbeSuccess: "start a"} {
		probes := &runtime.ProbeResults{Startup: map[string]runtime.ProbeResult{"s.1": result}}
		assert.Equal(t, want, decide(pod, see("ready s"), probes, 0).words(), result)
	}
	assert.Equal(t, "start a", decide(pod, see("ready s"), nil, 0).words(), "nobody probes here")
}

func TestDelayDoublesUpToThirtyTimesTheFirst(t *testing.T) { // rt-91, rt-92
	const second = time.Second
	for restarts, want := range []time.Duration{0, 10, 20, 40, 80, 160, 300, 300, 300} {
		c := &runtime.ContainerStatus{RestartCount: int32(restarts), StartedAt: epoch, FinishedAt: epoch.Add(second)}
		assert.Equal(t, want*second, delay(10*second, c), restarts)
		c.FinishedAt = epoch.Add(601 * second)
		assert.Zero(t, delay(10*second, c), "after ten good minutes")
		c.FinishedAt = epoch.Add(second)
		assert.Zero(t, delay(0, c), "without back-off")
	}
	assert.Equal(t, 300*second, delay(10*second, &runtime.ContainerStatus{RestartCount: 1 << 30}), "no overflow")
}
