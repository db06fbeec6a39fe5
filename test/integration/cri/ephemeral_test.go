package cri_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

func ephemeral(name, target, text string) v1.EphemeralContainer {
	return v1.EphemeralContainer{EphemeralContainerCommon: v1.EphemeralContainerCommon(script(name, text)), TargetContainerName: target}
}

// ephemeralOnContainerd checks containers that are added to a running pod (rt-45,
// rt-84).
func ephemeralOnContainerd(t *testing.T, s *sharedEngine) {
	a := s.enginePod(t, script("web", serves), script("log", serves))
	st := a.runs()
	pidns := func(c string) string {
		return strings.TrimSpace(a.exec(st.Container(c), "readlink /proc/self/ns/pid"))
	}
	a.pod = a.pod.DeepCopy()
	a.pod.Spec.EphemeralContainers = []v1.EphemeralContainer{
		ephemeral("debug", "web", "readlink /proc/self/ns/pid; tr '\\0' ' ' < /proc/1/cmdline; exit 4"),
		ephemeral("alone", "", "readlink /proc/self/ns/pid"),
		ephemeral("lost", "absent", "true"),
	}
	after := a.until("they have run", func(st *runtime.PodStatus) bool {
		return is(st, "debug", runtime.ContainerExited) && is(st, "alone", runtime.ContainerExited)
	})
	assert.EqualValues(t, 4, after.Container("debug").ExitCode)
	lines := strings.Split(a.log("debug", 0), "\n")
	require.Len(t, lines, 2)
	assert.Equal(t, pidns("web"), lines[0])
	assert.Contains(t, lines[1], serves, "its first process is the target's")
	alone := strings.TrimSpace(a.log("alone", 0))
	assert.NotEqual(t, pidns("web"), alone)
	assert.NotEqual(t, pidns("log"), alone)

	require.NotEmpty(t, a.failures)
	for _, f := range a.failures {
		assert.Equal(t, "lost", f.Target)
		assert.Equal(t, "CreateContainerConfigError", f.Reason)
		assert.Equal(t, "unable to find target container absent", f.Message)
	}
	for range 3 {
		a.sync(nil)
	}
	last := a.status()
	assert.EqualValues(t, 0, last.Container("debug").RestartCount, "it is not restarted")
	for _, name := range []string{"web", "log"} {
		assert.Equal(t, st.Container(name).ID, last.Container(name).ID)
	}
	assert.Contains(t, a.events(), "Normal Started spec.ephemeralContainers{debug}: Container started") // rt-81
}
