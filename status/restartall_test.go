package status_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

// restarts42 returns pod with the rule that an exit of its first regular
// container with 42 restarts all containers.
func restarts42(pod *v1.Pod) *v1.Pod {
	pod.Spec.Containers[0].RestartPolicy = new(v1.ContainerRestartPolicyNever)
	pod.Spec.Containers[0].RestartPolicyRules = []v1.ContainerRestartRule{{
		Action:    v1.ContainerRestartRuleActionRestartAllContainers,
		ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}},
	}}
	return pod
}

func TestRestartingAllIsACondition(t *testing.T) { // rt-138, rt-139, rt-143
	const never = v1.RestartPolicyNever
	pod := restarts42(podOf(never, "a", "b"))
	deleted := pod.DeepCopy()
	deleted.DeletionTimestamp = new(metav1.NewTime(t0))
	former := seen(exitedC("a", 0, 42))
	former.Sandboxes = slices.Insert(former.Sandboxes, 0, runtime.SandboxStatus{ID: "x://new", State: runtime.SandboxReady, Attempt: 1})
	reported := v1.PodStatus{Phase: v1.PodRunning, Conditions: []v1.PodCondition{{Type: v1.AllContainersRestarting, Status: v1.ConditionTrue}}}

	for name, tc := range map[string]struct {
		facts status.Facts
		want  string
	}{
		"rt-139 not without such a rule":     {status.Facts{Pod: podOf(never, "a"), Observed: seen(exitedC("a", 0, 42))}, ""},
		"rt-139 clean":                       {status.Facts{Pod: pod, Observed: seen(runningC("a", 0))}, "False  "},
		"rt-139 an exit triggers it":         {status.Facts{Pod: pod, Observed: seen(exitedC("a", 0, 42), runningC("b", 0))}, "True RestartAllContainersStarted container exited with restart policy rule"},
		"rt-139 another exit":                {status.Facts{Pod: pod, Observed: seen(exitedC("a", 0, 41), runningC("b", 0))}, "False  "},
		"rt-139 it runs again":               {status.Facts{Pod: pod, Observed: seen(runningC("a", 1), exitedC("a", 0, 42)), Previous: reported}, "False  "},
		"rt-139 succeeded":                   {status.Facts{Pod: pod, Observed: seen(exitedC("a", 0, 0), exitedC("b", 0, 0))}, "False PodCompleted "},
		"rt-139 failed":                      {status.Facts{Pod: pod, Observed: seen(exitedC("a", 0, 1), exitedC("b", 0, 0))}, "False PodFailed "},
		"rt-139 failed, previous status set": {status.Facts{Pod: pod, Observed: seen(exitedC("a", 0, 42)), Previous: reported, Termination: runtime.Termination{Failed: true}}, "False PodFailed "},
		"rt-139 not observed":                {status.Facts{Pod: pod, Previous: reported}, "True RestartAllContainersStarted container exited with restart policy rule"},
		"rt-143 all are gone":                {status.Facts{Pod: pod, Observed: seen(), Previous: reported}, "False  "},
		"rt-138 a former sandbox's exit":     {status.Facts{Pod: pod, Observed: former}, "False  "},
		"a pod that is deleted does not":     {status.Facts{Pod: deleted, Observed: seen(exitedC("a", 0, 42), runningC("b", 0))}, "False  "},
		"rt-36 a rule without its own policy": {status.Facts{Pod: func() *v1.Pod {
			p := pod.DeepCopy()
			p.Spec.Containers[0].RestartPolicy = nil
			return p
		}(), Observed: seen(exitedC("a", 0, 42), runningC("b", 0))}, "True RestartAllContainersStarted container exited with restart policy rule"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.facts.Now = t0
			s := status.Compute(tc.facts)
			got := ""
			if c := status.Condition(s.Conditions, v1.AllContainersRestarting); c != nil {
				got = string(c.Status) + " " + c.Reason + " " + c.Message
				assert.Equal(t, c, &s.Conditions[len(s.Conditions)-1], "st-38: the last of all")
			}
			assert.Equal(t, tc.want, got)
		})
	}
}

// A pod starts over: its container statuses at each step (rt-142).
func TestContainersOfAPodThatStartsOver(t *testing.T) {
	pod := restarts42(withSidecar(withInit(podOf(v1.RestartPolicyNever, "a", "b", "c"), "i"), "s"))
	f := status.Facts{Pod: pod, Now: t0}
	look := func(instances ...runtime.ContainerStatus) (lines []string) {
		t.Helper()
		f.Now = f.Now.Add(time.Second)
		f.Observed = seen(instances...)
		f.Previous = status.Compute(f)
		require.Equal(t, f.Previous, status.Compute(f), "the computation is idempotent")
		lines = append(lines, string(f.Previous.Phase))
		for _, list := range [][]v1.ContainerStatus{f.Previous.InitContainerStatuses, f.Previous.ContainerStatuses} {
			for _, c := range list {
				lines = append(lines, c.Name+" "+brief(c))
			}
		}
		return lines
	}
	const (
		over = "waiting(RestartingAllContainers)"
		shot = " last=exited(137 RestartingAllContainers)"
	)
	i, s, a, c := exitedC("i", 0, 0), runningC("s", 0), exitedC("a", 0, 42), exitedC("c", 0, 0)
	look(i, s, runningC("a", 0), runningC("b", 0), c)
	look(i, s, a, runningC("b", 0), c)
	require.Equal(t, v1.ConditionTrue, status.Condition(f.Previous.Conditions, v1.AllContainersRestarting).Status)

	assert.Equal(t, []string{"Running",
		"i exited(0 Completed) last=- restarts=0",
		"s running last=- restarts=0",
		"a exited(42 Error) last=- restarts=0",
		"b " + over + shot + " restarts=1",
		"c " + over + " last=exited(0 Completed) restarts=1",
	}, look(i, s, a), "the regular victims are gone")

	assert.Equal(t, []string{"Running",
		"i " + over + " last=exited(0 Completed) restarts=1",
		"s " + over + shot + " restarts=1",
		"a exited(42 Error) last=- restarts=0",
		"b " + over + shot + " restarts=1",
		"c " + over + " last=exited(0 Completed) restarts=1",
	}, look(a), "only the trigger is left")

	gone := []string{"Running",
		"i " + over + " last=exited(0 Completed) restarts=1",
		"s " + over + shot + " restarts=1",
		"a " + over + " last=exited(42 Error) restarts=1",
		"b " + over + shot + " restarts=1",
		"c " + over + " last=exited(0 Completed) restarts=1",
	}
	assert.Equal(t, gone, look(), "all are gone")
	assert.Equal(t, v1.ConditionFalse, status.Condition(f.Previous.Conditions, v1.AllContainersRestarting).Status, "rt-143")
	assert.Equal(t, gone, look(), "and stay so until they are started")

	assert.Equal(t, "i running last=exited(0 Completed) restarts=1", look(runningC("i", 1))[1])
	all := look(runningC("c", 1), runningC("b", 1), runningC("a", 1), runningC("s", 1), exitedC("i", 1, 0))
	assert.Equal(t, []string{"Running",
		"i exited(0 Completed) last=exited(0 Completed) restarts=1",
		"s running" + shot + " restarts=1",
		"a running last=exited(42 Error) restarts=1",
		"b running" + shot + " restarts=1",
		"c running last=exited(0 Completed) restarts=1",
	}, all)
}
