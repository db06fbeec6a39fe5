package podspec_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

func TestAnExitDecidesByItsKindOfContainer(t *testing.T) { // rt-33, rt-49, rt-64
	pod := &v1.Pod{Spec: v1.PodSpec{
		RestartPolicy: v1.RestartPolicyOnFailure,
		InitContainers: []v1.Container{
			{Name: "setup"}, {Name: "proxy", RestartPolicy: new(v1.ContainerRestartPolicyAlways)},
			{Name: "once", RestartPolicy: new(v1.ContainerRestartPolicyNever)},
		},
		Containers: []v1.Container{{Name: "web"}},
	}}
	oom := podspec.Exit{Reason: "OOMKilled"}
	for name, tc := range map[string]struct {
		container string
		exit      podspec.Exit
		succeeded bool
		after     podspec.ExitAction
	}{
		"an init container succeeds":                 {"setup", podspec.Exit{}, true, podspec.NoRestart},
		"it fails":                                   {"setup", podspec.Exit{Code: 1}, false, podspec.RestartContainer},
		"it has too little memory":                   {"setup", oom, false, podspec.RestartContainer},
		"the same, and it must not restart":          {"once", oom, false, podspec.NoRestart},
		"it was stopped for another instance":        {"once", podspec.Exit{Replaced: true}, false, podspec.RestartContainer},
		"a sidecar exits":                            {"proxy", podspec.Exit{}, true, podspec.RestartContainer},
		"a container succeeds":                       {"web", podspec.Exit{}, true, podspec.NoRestart},
		"one of its processes has too little memory": {"web", oom, true, podspec.NoRestart},
		"a container was stopped for another one":    {"web", podspec.Exit{Replaced: true}, false, podspec.RestartContainer},
	} {
		t.Run(name, func(t *testing.T) {
			c := podspec.Container(pod, tc.container)
			assert.Equal(t, tc.succeeded, podspec.Succeeded(pod, c, tc.exit))
			assert.Equal(t, tc.after, podspec.ActionAfterExit(pod, c, tc.exit))
		})
	}
	assert.Equal(t, podspec.Exit{Code: 137}, podspec.ExitOf(&runtime.ContainerStatus{State: runtime.ContainerUnknown}))
	assert.Equal(t, podspec.Exit{Code: 3, Reason: "Error", Replaced: true},
		podspec.ExitOf(&runtime.ContainerStatus{State: runtime.ContainerExited, ExitCode: 3, Reason: "Error", Replaced: true}))
}
