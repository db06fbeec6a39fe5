package plan_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// al-14, al-15, al-19, and the place of resizes among the rest.
func TestResize(t *testing.T) {
	check(t, []row{
		{"al-14 nothing changed", `
			container web cpu=100m/200m memory=64Mi/128Mi
			sandbox s0
			has web#0 running cpu=100m/200m memory=64Mi/128Mi`,
			"nothing"},
		{"al-14 allocated resources unknown", `
			container web cpu=100m/200m memory=64Mi/128Mi
			sandbox s0
			has web#0 running`,
			"nothing"},
		{"al-14 cpu request", `
			container web cpu=150m/200m
			sandbox s0
			has web#0 running cpu=100m/200m`,
			"resize web-0(cpu request from 100m to 150m)"},
		{"al-14 cpu limit", `
			container web cpu=100m/300m
			sandbox s0
			has web#0 running cpu=100m/200m`,
			"resize web-0(cpu limit from 200m to 300m)"},
		{"al-14 memory request", `
			container web memory=32Mi/128Mi
			sandbox s0
			has web#0 running memory=64Mi/128Mi`,
			"resize web-0(memory request from 64Mi to 32Mi)"},
		{"al-14 memory limit", `
			container web memory=64Mi/256Mi
			sandbox s0
			has web#0 running memory=64Mi/128Mi`,
			"resize web-0(memory limit from 128Mi to 256Mi)"},
		{"al-14 all of it", `
			container web cpu=1/2 memory=1Gi/2Gi
			sandbox s0
			has web#0 running cpu=100m/200m memory=64Mi/128Mi`,
			"resize web-0(cpu request from 100m to 1, cpu limit from 200m to 2, memory request from 64Mi to 1Gi, memory limit from 128Mi to 2Gi)"},
		{"al-14 the same amount in another format", `
			container web cpu=1/2 memory=1Gi
			sandbox s0
			has web#0 running cpu=1000m/2000m memory=1024Mi`,
			"nothing"},
		{"al-14 the least shares", `
			container web cpu=2m
			sandbox s0
			has web#0 running cpu=1m`,
			"nothing"},
		{"al-14 no request and the least shares", `
			container web cpu=2m
			sandbox s0
			has web#0 running memory=1Mi`,
			"resize web-0(memory request from 1Mi to none)"},
		{"al-14 the least quota", `
			container web cpu=100m/10m
			sandbox s0
			has web#0 running cpu=100m/1m`,
			"nothing"},
		{"al-14 requests that give the same shares", `
			container web cpu=1500u
			sandbox s0
			has web#0 running cpu=2m`,
			"nothing"},
		{"al-14 the request follows the limit", `
			container web cpu=/300m
			sandbox s0
			has web#0 running cpu=200m/300m`,
			"resize web-0(cpu request from 200m to none)"},
		{"al-14 a limit is new", `
			container web cpu=100m/200m memory=64Mi/128Mi
			sandbox s0
			has web#0 running cpu=100m memory=64Mi`,
			"resize web-0(cpu limit from none to 200m, memory limit from none to 128Mi)"},
		{"al-19 a removed limit is kept", `
			container web cpu=100m memory=64Mi
			sandbox s0
			has web#0 running cpu=100m/200m memory=64Mi/128Mi`,
			"nothing"},
		{"al-19 also without a request", `
			container web
			sandbox s0
			has web#0 running cpu=/200m`,
			"nothing"},
		{"al-15 restart for cpu", `
			container web cpu=1 memory=1Gi onresize=cpu
			sandbox s0
			has web#0 running cpu=500m memory=1Gi`,
			"kill web-0(Resize); start web#1(Resize)"},
		{"al-15 restart for memory", `
			container web cpu=1 memory=1Gi onresize=memory
			sandbox s0
			has web#0 running cpu=1 memory=2Gi`,
			"kill web-0(Resize); start web#1(Resize)"},
		{"al-15 the policy of the other resource does not matter", `
			container web cpu=1 memory=1Gi onresize=memory
			sandbox s0
			has web#0 running cpu=500m memory=1Gi`,
			"resize web-0(cpu request from 500m to 1)"},
		{"al-15 both change, one requires a restart", `
			container web cpu=1 memory=1Gi onresize=memory
			sandbox s0
			has web#0 running cpu=500m memory=2Gi`,
			"kill web-0(Resize); start web#1(Resize)"},
		{"al-15 with any policy, like another image", `
			pod Never
			container web cpu=1 onresize=cpu
			sandbox s0
			has web#0 running cpu=500m`,
			"kill web-0(Resize); start web#1(Resize)"},
		{"al-15 a request without a checkpoint is no reason for a restart", `
			container web memory=1Gi/2Gi onresize=memory
			sandbox s0
			has web#0 running memory=/2Gi`,
			"resize web-0(memory request from none to 1Gi)"},
		{"rt-62 a sidecar", `
			init proxy policy=Always cpu=2
			container web
			sandbox s0
			has proxy#0 running cpu=1
			has web#0 running`,
			"resize proxy-0(cpu request from 1 to 2)"},
		{"al-15 a sidecar", `
			init proxy policy=Always cpu=2 onresize=cpu
			container web
			sandbox s0
			has proxy#0 running cpu=1
			has web#0 running`,
			"kill proxy-0(Resize); start proxy#1(Resize)"},
		{"rt-60 a sidecar that starts up", `
			init proxy policy=Always startup cpu=2
			container web
			sandbox s0
			has proxy#0 running cpu=1
			probed`,
			"resize proxy-0(cpu request from 1 to 2)"},
		{"rt-61 a sidecar that lets the next one start", `
			init proxy policy=Always cpu=2
			container web
			sandbox s0
			has proxy#0 running cpu=1`,
			"start web#0(New); resize proxy-0(cpu request from 1 to 2)"},
		{"rt-59 an init container that runs", `
			init setup cpu=2
			container web
			sandbox s0
			has setup#0 running cpu=1`,
			"resize setup-0(cpu request from 1 to 2)"},
		{"rt-59 an init container that runs, by a restart", `
			pod Never
			init setup cpu=2 onresize=cpu
			container web
			sandbox s0
			has setup#0 running cpu=1`,
			"kill setup-0(Resize); start setup#1(Resize)"},
		{"exited containers are not resized", `
			pod OnFailure
			init setup cpu=2
			container web
			container job cpu=2
			sandbox s0
			has setup#0 exited=0 cpu=1
			has web#0 running
			has job#0 exited=0 cpu=1`,
			"nothing"},
		{"replaced containers are not resized", `
			container web cpu=2
			sandbox s0
			has web#0 running cpu=1 made=nginx:0`,
			"kill web-0(DefinitionChanged); start web#1(DefinitionChanged)"},
		{"in the order of the spec", `
			init proxy policy=Always cpu=2
			container web cpu=2
			container log cpu=1
			sandbox s0
			has log#0 running cpu=2
			has web#0 running cpu=1
			has proxy#0 running cpu=1`,
			"resize proxy-0(cpu request from 1 to 2); resize web-0(cpu request from 1 to 2); resize log-0(cpu request from 2 to 1)"},
		{"rt-31 not of a deleted pod", `
			pod deleted
			container web cpu=2
			sandbox s0
			has web#0 running cpu=1`,
			"nothing"},
		{"absurd amounts", `
			container web cpu=9E/9E memory=9E/9E
			sandbox s0
			has web#0 running cpu=9E/9E memory=9E/-1`,
			"resize web-0(memory limit from -1 to 9E)"},
	})
}

func TestAResizeReportsOldAndNewAmounts(t *testing.T) {
	s := newModel(t, `
		container web cpu=200m memory=64Mi/256Mi
		sandbox s0
		has web#0 running cpu=100m/400m memory=64Mi/128Mi`)
	c := &s.pod.Spec.Containers[0]
	c.Resources.Requests["example.com/gpu"] = resource.MustParse("1")
	p := s.plan()
	require.Len(t, p.Resize, 1)
	r := p.Resize[0]
	assert.Equal(t, plan.Regular, r.Kind)
	assert.Same(t, c, r.Container)
	assert.Same(t, s.status.Containers[0].Resources, r.From)
	assert.Equal(t, &v1.ResourceRequirements{
		Requests: v1.ResourceList{"cpu": resource.MustParse("200m"), "memory": resource.MustParse("64Mi")},
		Limits:   v1.ResourceList{"cpu": resource.MustParse("400m"), "memory": resource.MustParse("256Mi")}, // al-19
	}, r.To)
	assert.Equal(t, "resize container web (web-0): cpu request from 100m to 200m, memory limit from 128Mi to 256Mi", p.String())
	assert.False(t, p.Empty())
	s.apply(p)
	assert.Equal(t, "nothing", brief(s.plan()))
}

// al-14: pod-level resources are resized like those of containers.
func TestAPodIsResizedAsAWhole(t *testing.T) {
	limit := func(cpu string) *v1.ResourceRequirements {
		return &v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)}}
	}
	web := v1.Container{Name: "web", Image: "img"}
	running := &runtime.PodStatus{
		Sandboxes:  []runtime.SandboxStatus{{ID: "s0", State: runtime.SandboxReady}},
		Containers: []runtime.ContainerStatus{{ID: "c0", Name: "web", SandboxID: "s0", State: runtime.ContainerRunning, Hash: plan.Hash(&web)}},
	}
	for _, tc := range []struct {
		name         string
		wants, given *v1.ResourceRequirements
		why          string
	}{
		{"the same", limit("1"), limit("1000m"), ""},
		{"more", limit("2"), limit("1"), "cpu limit from 1 to 2"},
		{"unknown", limit("2"), nil, ""},
		{"nothing asked for", nil, limit("1"), ""},
		{"al-19 a limit is removed", &v1.ResourceRequirements{}, limit("1"), ""},
	} {
		pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{web}, Resources: tc.wants}}
		p := plan.Compute(plan.Input{Pod: pod, Status: running, History: plan.History{PodResources: tc.given}})
		if tc.why == "" {
			assert.Nil(t, p.ResizePod, tc.name)
			assert.True(t, p.Empty(), tc.name)
			continue
		}
		require.NotNil(t, p.ResizePod, tc.name)
		assert.False(t, p.Empty())
		assert.Equal(t, tc.given, p.ResizePod.From)
		assert.Equal(t, tc.wants, p.ResizePod.To)
		assert.Equal(t, "resize the pod: "+tc.why, p.String())
	}
	pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{web}, Resources: limit("2"), RestartPolicy: v1.RestartPolicyNever}}
	running.Containers[0].State = runtime.ContainerExited
	p := plan.Compute(plan.Input{Pod: pod, Status: running, History: plan.History{PodResources: limit("1")}})
	assert.True(t, p.KillPod)
	assert.Nil(t, p.ResizePod, "the pod has terminated")
}

// cm-33, al-14: a container without a limit has that of the pod, and is resized or restarted with it.
func TestAnInheritedLimitIsResizedWithThePod(t *testing.T) {
	limits := func(kv ...string) *v1.ResourceRequirements {
		l := v1.ResourceList{}
		for i := 0; i+1 < len(kv); i += 2 {
			l[v1.ResourceName(kv[i])] = resource.MustParse(kv[i+1])
		}
		return &v1.ResourceRequirements{Limits: l}
	}
	restart := []v1.ContainerResizePolicy{{ResourceName: v1.ResourceCPU, RestartPolicy: v1.RestartContainer}}
	for _, tc := range []struct {
		name       string
		own        *v1.ResourceRequirements
		policy     []v1.ContainerResizePolicy
		pod, given *v1.ResourceRequirements
		want       string
	}{
		{"the same", limits(), nil, limits("cpu", "1", "memory", "1Gi"), limits("cpu", "1", "memory", "1Gi"), ""},
		{"more", limits(), nil, limits("cpu", "2"), limits("cpu", "1"), "cpu limit from 1 to 2"},
		{"restarted", limits(), restart, limits("cpu", "2"), limits("cpu", "1"), "restart"},
		{"another resource than that of the policy", limits(), restart, limits("memory", "2Gi"), limits("memory", "1Gi"), "memory limit from 1Gi to 2Gi"},
		{"a limit of its own", limits("cpu", "1"), restart, limits("cpu", "2"), limits("cpu", "1"), ""},
		{"no limit of the pod", limits(), restart, nil, limits("cpu", "1"), ""},
	} {
		web := v1.Container{Name: "web", Image: "img", Resources: *tc.own, ResizePolicy: tc.policy}
		pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{web}, Resources: tc.pod}}
		p := plan.Compute(plan.Input{Pod: pod, Status: &runtime.PodStatus{
			Sandboxes:  []runtime.SandboxStatus{{ID: "s0", State: runtime.SandboxReady}},
			Containers: []runtime.ContainerStatus{{ID: "c0", Name: "web", SandboxID: "s0", State: runtime.ContainerRunning, Hash: plan.Hash(&web), Resources: tc.given}},
		}})
		switch tc.want {
		case "":
			assert.True(t, p.Empty(), "%s: %s", tc.name, p)
		case "restart":
			require.Len(t, p.Kill, 1, tc.name)
			assert.Equal(t, plan.KillResize, p.Kill[0].Reason, tc.name)
		default:
			require.Len(t, p.Resize, 1, tc.name)
			assert.Equal(t, tc.want, p.Resize[0].Why, tc.name)
		}
	}
}
