package fakecri_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

func TestAScriptThatNoRuntimeCanFollowIsAnError(t *testing.T) {
	for script, want := range map[string]string{
		"image a layer=1;name=x\nimage b layer=2;name=x": `image b: layer "x" has 2 bytes here, and 1 elsewhere`,
		"image Busybox": "image Busybox: invalid reference format",
		"image busybox\nimage docker.io/library/busybox":       "is the same image as busybox",
		"image busybox:latest\nimage docker.io/busybox:latest": "is the same image as busybox:latest",
		"image * present":                      "image *: cannot be present",
		"container web ready=5s":               "container web: behavior \"ready=5s\": ready is not supported",
		"run busybox evict@5s":                 "run busybox: behavior \"evict@5s\": evict is not supported",
		"fault Start":                          `fault Start: the CRI has no method "Start"`,
		"fault Close":                          `fault Close: the CRI has no method "Close"`,
		"fault StartContainer stale=1s":        "only ListPodSandbox, ListContainers, ListImages can be stale",
		"fault StartContainer error=x;code=OK": `"OK" is no code`,
	} {
		s, err := fake.ParseScript(script)
		require.NoError(t, err, script)
		_, err = fakecri.ScriptConfig(s, 1)
		assert.ErrorContains(t, err, want, script)
	}
}

func TestRulesOfFaultsApplyToImagesByTheirFullName(t *testing.T) {
	s, err := fake.ParseScript("fault * image=busybox error=gone;code=NotFound")
	require.NoError(t, err)
	cfg, err := fakecri.ScriptConfig(s, 1)
	require.NoError(t, err)
	assert.Error(t, cfg.Faults(fake.Call{Method: "PullImage", Image: "docker.io/library/busybox:latest"}).Err)
	assert.Zero(t, cfg.Faults(fake.Call{Method: "PullImage", Image: "nginx"}))
	on(t, cfg, func(n *node) {
		_, err := n.PullImage(n.ctx, nil, nil, nil)
		assert.Error(n, err)
		_, err = n.ListImages(n.ctx, nil)
		assert.NoError(n, err)
	})
}

func TestAnErrorOfARuleHasItsCode(t *testing.T) {
	s, err := fake.ParseScript("fault ListContainers error=busy;code=Unavailable\nfault Version lost\nfault Status")
	require.NoError(t, err)
	cfg, err := fakecri.ScriptConfig(s, 1)
	require.NoError(t, err)
	on(t, cfg, func(n *node) {
		_, err := n.ListContainers(n.ctx, nil)
		assert.Equal(n, codes.Unavailable, status.Code(err))
		_, err = n.Runtime.Version(n.ctx, "")
		hasCode(n, codes.Unavailable, err)
		_, err = n.Runtime.Status(n.ctx, false)
		hasCode(n, codes.Unknown, err)
	})
}

func TestAContainerCannotBeStartedForSomeTime(t *testing.T) {
	on(t, does(fake.Behavior{Fail: &fake.Failure{Reason: "StartError", For: time.Minute}}), func(n *node) {
		sandbox := n.sandbox("a")
		for i, succeeds := range []bool{false, false, true} {
			err := n.StartContainer(n.ctx, n.created(sandbox, "a", "web", uint32(i)))
			assert.Equal(n, succeeds, err == nil, "attempt %d: %v", i, err)
			time.Sleep(40 * time.Second)
		}
	})
}
