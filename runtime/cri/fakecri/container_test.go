package fakecri_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

func TestAContainerLives(t *testing.T) {
	on(t, fakecri.Config{}, func(n *node) {
		sandbox := n.sandbox("a")
		id := n.created(sandbox, "a", "web", 0)
		st := n.look(id)
		assert.Equal(n, runtimeapi.ContainerState_CONTAINER_CREATED, st.State)
		assert.Zero(n, st.StartedAt)
		assert.Equal(n, filepath.FromSlash("/logs/a/web/0.log"), st.LogPath)
		assert.Equal(n, "registry.example/web:1", st.Image.Image)
		assert.EqualValues(n, 100, st.Resources.Linux.CpuShares)
		assert.Equal(n, runtimeapi.Signal_SIGNAL_SIGTERM, st.StopSignal)

		time.Sleep(time.Second)
		require.NoError(n, n.StartContainer(n.ctx, id))
		st = n.look(id)
		assert.Equal(n, runtimeapi.ContainerState_CONTAINER_RUNNING, st.State)
		assert.Equal(n, time.Second, time.Duration(st.StartedAt-st.CreatedAt))

		time.Sleep(time.Hour)
		n.runs(id)
		require.NoError(n, n.StopContainer(n.ctx, id, 30))
		n.exited(id, 143, "Error", 0)
		require.NoError(n, n.RemoveContainer(n.ctx, id))
		_, err := n.ContainerStatus(n.ctx, id, false)
		hasCode(n, codes.NotFound, err)
		assert.Empty(n, n.Containers("a"))
		n.created(sandbox, "a", "web", 0) // the name is free again
	})
}

func TestAContainerExitsByItsBehavior(t *testing.T) {
	for name, c := range map[string]struct {
		exit   fake.Exit
		code   int32
		reason string
	}{
		"done":   {fake.Exit{}, 0, "Completed"},
		"code":   {fake.Exit{Code: 3}, 3, "Error"},
		"signal": {fake.Exit{Code: 128 + 11}, 139, "Error"},
		"oom":    {fake.Exit{Code: 137, Reason: fake.OOMKilled}, 137, "OOMKilled"},
	} {
		t.Run(name, func(t *testing.T) {
			c.exit.After = time.Minute
			on(t, does(fake.Behavior{Exit: &c.exit}), func(n *node) {
				id, _ := n.started()
				time.Sleep(time.Minute - time.Second)
				n.runs(id)
				time.Sleep(2 * time.Second)
				n.exited(id, c.code, c.reason, time.Second)
			})
		})
	}
}

func TestAContainerCrashesANumberOfTimes(t *testing.T) {
	on(t, does(fake.Behavior{Exit: &fake.Exit{After: time.Second, Code: 1, Crashes: 2}}), func(n *node) {
		sandbox := n.sandbox("a")
		for i := range uint32(3) {
			id := n.created(sandbox, "a", "web", i)
			require.NoError(n, n.StartContainer(n.ctx, id))
			time.Sleep(time.Minute)
			if i < 2 {
				n.exited(id, 1, "Error", time.Minute-time.Second)
				require.NoError(n, n.RemoveContainer(n.ctx, id)) // it still counts
			} else {
				n.runs(id)
			}
		}
	})
}

func TestAStartTakesItsTime(t *testing.T) {
	on(t, does(fake.Behavior{StartDelay: 5 * time.Second}), func(n *node) {
		id := n.created(n.sandbox("a"), "a", "web", 0)
		done := make(chan error, 1)
		go func() { done <- n.StartContainer(n.ctx, id) }()
		time.Sleep(time.Second)
		assert.Equal(n, runtimeapi.ContainerState_CONTAINER_CREATED, n.look(id).State)
		hasCode(n, codes.Unknown, n.StartContainer(n.ctx, id))
		hasCode(n, codes.Unknown, n.RemoveContainer(n.ctx, id))
		require.NoError(n, <-done)
		assert.Equal(n, 5*time.Second, time.Duration(n.look(id).StartedAt-n.look(id).CreatedAt))
	})
}

func TestAStartThatFailsLeavesTheContainerExited(t *testing.T) {
	on(t, does(fake.Behavior{Fail: &fake.Failure{Reason: "StartError", Message: "exec: no such file"}}), func(n *node) {
		id := n.created(n.sandbox("a"), "a", "web", 0)
		err := n.StartContainer(n.ctx, id)
		hasCode(n, codes.Unknown, err)
		assert.ErrorContains(n, err, "exec: no such file")
		n.exited(id, 128, "StartError", 0)
		assert.Contains(n, n.look(id).Message, "exec: no such file")
		assert.Zero(n, n.look(id).StartedAt)
	})
}

func TestNothingIsCreatedOrStartedInASandboxThatIsNotReady(t *testing.T) {
	on(t, fakecri.Config{}, func(n *node) {
		sandbox := n.sandbox("a")
		id := n.created(sandbox, "a", "web", 0)
		require.NoError(n, n.StopPodSandbox(n.ctx, sandbox))
		_, err := n.CreateContainer(n.ctx, sandbox, containerConfig("a", "db"), podConfig("a"))
		hasCode(n, codes.Unknown, err)
		hasCode(n, codes.Unknown, n.StartContainer(n.ctx, id))
		n.exited(id, 128, "StartError", 0)
	})
}

// TestErrorsHaveTheCodesOfContainerd contains the codes that containerd 2.4.2
// returned.
func TestErrorsHaveTheCodesOfContainerd(t *testing.T) {
	on(t, fakecri.Config{}, func(n *node) {
		running, sandbox := n.started()
		created, ended := n.created(sandbox, "a", "new", 0), n.created(sandbox, "a", "old", 0)
		require.NoError(n, n.StartContainer(n.ctx, ended))
		require.NoError(n, n.StopContainer(n.ctx, ended, 1))
		const absent = "00ff00ff"
		create := func(sandbox string, change func(*runtimeapi.ContainerConfig)) error {
			cfg := containerConfig("a", "more")
			change(cfg)
			_, err := n.CreateContainer(n.ctx, sandbox, cfg, podConfig("a"))
			return err
		}
		nothing := func(*runtimeapi.ContainerConfig) {}
		containerStatus := func(id string) error { _, err := n.ContainerStatus(n.ctx, id, false); return err }
		podStatus := func(id string) error { _, err := n.PodSandboxStatus(n.ctx, id, false); return err }
		checkpoint := func(id string) error {
			return n.CheckpointContainer(n.ctx, &runtimeapi.CheckpointContainerRequest{ContainerId: id})
		}
		_, restore := n.RestorePod(n.ctx, nil)
		_, noPod := n.CreateContainer(n.ctx, sandbox, containerConfig("a", "more"), nil)
		for what, c := range map[string]struct {
			err  error
			want codes.Code
		}{
			"status of absent":          {containerStatus(absent), codes.NotFound},
			"status of no ID":           {containerStatus(""), codes.Unknown},
			"status of the sandbox's":   {containerStatus(sandbox), codes.NotFound},
			"sandbox status of absent":  {podStatus(absent), codes.NotFound},
			"sandbox status of no ID":   {podStatus(""), codes.Unknown},
			"stop of absent":            {n.StopContainer(n.ctx, absent, 1), codes.OK},
			"stop of no ID":             {n.StopContainer(n.ctx, "", 1), codes.Unknown},
			"remove of absent":          {n.RemoveContainer(n.ctx, absent), codes.OK},
			"remove of no ID":           {n.RemoveContainer(n.ctx, ""), codes.Unknown},
			"sandbox stop of absent":    {n.StopPodSandbox(n.ctx, absent), codes.OK},
			"sandbox stop of no ID":     {n.StopPodSandbox(n.ctx, ""), codes.Unknown},
			"sandbox remove of absent":  {n.RemovePodSandbox(n.ctx, absent), codes.OK},
			"sandbox remove of no ID":   {n.RemovePodSandbox(n.ctx, ""), codes.Unknown},
			"start of absent":           {n.StartContainer(n.ctx, absent), codes.NotFound},
			"start of no ID":            {n.StartContainer(n.ctx, ""), codes.Unknown},
			"start of one that runs":    {n.StartContainer(n.ctx, running), codes.Unknown},
			"start of an exited one":    {n.StartContainer(n.ctx, ended), codes.Unknown},
			"stop of a created one":     {n.StopContainer(n.ctx, created, 1), codes.OK},
			"stop of an exited one":     {n.StopContainer(n.ctx, ended, 1), codes.OK},
			"create in absent":          {create(absent, nothing), codes.NotFound},
			"create in no ID":           {create("", nothing), codes.Unknown},
			"create without metadata":   {create(sandbox, func(c *runtimeapi.ContainerConfig) { c.Metadata = nil }), codes.Unknown},
			"create without a pod":      {noPod, codes.Unknown},
			"create with a taken name":  {create(sandbox, func(c *runtimeapi.ContainerConfig) { c.Metadata.Name = "web" }), codes.FailedPrecondition},
			"update of absent":          {n.UpdateContainerResources(n.ctx, absent, nil), codes.NotFound},
			"update of a created one":   {n.UpdateContainerResources(n.ctx, created, nil), codes.OK},
			"update of an exited one":   {n.UpdateContainerResources(n.ctx, ended, nil), codes.OK},
			"reopen of absent's log":    {n.ReopenContainerLog(n.ctx, absent), codes.NotFound},
			"reopen of a created one's": {n.ReopenContainerLog(n.ctx, created), codes.Unknown},
			"reopen of an exited one's": {n.ReopenContainerLog(n.ctx, ended), codes.Unknown},
			"reopen of a running one's": {n.ReopenContainerLog(n.ctx, running), codes.OK},
			"checkpoint":                {checkpoint(running), codes.Unknown},
			"checkpoint of absent":      {checkpoint(absent), codes.Unknown},
			"checkpoint of a pod":       {n.CheckpointPod(n.ctx, nil), codes.Unimplemented},
			"restore":                   {restore, codes.Unimplemented},
		} {
			assert.Equal(n, c.want.String(), status.Code(c.err).String(), "%s: %v", what, c.err)
		}
	})
}

func TestAContainerWithAnotherUserNamespaceThanItsSandboxIsRefused(t *testing.T) {
	on(t, fakecri.Config{}, func(n *node) {
		sandbox := n.sandbox("a")
		cfg := containerConfig("a", "web")
		cfg.Linux.SecurityContext = &runtimeapi.LinuxContainerSecurityContext{NamespaceOptions: &runtimeapi.NamespaceOption{
			UsernsOptions: &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_POD},
		}}
		_, err := n.CreateContainer(n.ctx, sandbox, cfg, podConfig("a"))
		hasCode(n, codes.Unknown, err)
		assert.ErrorContains(n, err, "user namespace")

		// The sandbox configuration in the call is compared, as in containerd, and not the one
		// that the sandbox was created from.
		in := podConfig("a")
		in.Linux = &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
			NamespaceOptions: cfg.Linux.SecurityContext.NamespaceOptions,
		}}
		n.pull(cfg.Image.Image)
		_, err = n.CreateContainer(n.ctx, sandbox, cfg, in)
		assert.NoError(n, err)
	})
}

func TestResourcesThatAreSetChange(t *testing.T) {
	on(t, fakecri.Config{}, func(n *node) {
		id, _ := n.started()
		before := n.look(id)
		require.NoError(n, n.UpdateContainerResources(n.ctx, id, &runtimeapi.ContainerResources{
			Linux: &runtimeapi.LinuxContainerResources{CpuShares: 200, CpuQuota: 20_000, CpuPeriod: 100_000},
		}))
		res := n.look(id).Resources.Linux
		assert.EqualValues(n, 200, res.CpuShares)
		assert.EqualValues(n, 20_000, res.CpuQuota)
		assert.EqualValues(n, 1<<20, res.MemoryLimitInBytes, "unset fields are not changed")
		assert.EqualValues(n, 100, before.Resources.Linux.CpuShares, "earlier responses are not changed")
	})
}

func TestAContainerThatRunsIsKilledToBeRemoved(t *testing.T) {
	on(t, does(fake.Behavior{IgnoreTERM: true}), func(n *node) {
		id, _ := n.started()
		require.NoError(n, n.RemoveContainer(n.ctx, id))
		assert.Empty(n, n.Containers(""))
	})
}

func TestATerminationMessageIsWritten(t *testing.T) {
	on(t, does(fake.Behavior{Exit: &fake.Exit{After: time.Second, Code: 1, Message: "out of luck"}}), func(n *node) {
		file := filepath.Join(n.TempDir(), "message")
		require.NoError(n, os.WriteFile(file, nil, 0o600))
		sandbox := n.sandbox("a")
		n.created(sandbox, "a", "other", 0) // its image is present now
		cfg := containerConfig("a", "web")
		cfg.Annotations = map[string]string{"io.kubernetes.container.terminationMessagePath": "/dev/termination-log"}
		cfg.Mounts = []*runtimeapi.Mount{{ContainerPath: "/dev/termination-log", HostPath: file}}
		id, err := n.CreateContainer(n.ctx, sandbox, cfg, podConfig("a"))
		require.NoError(n, err)
		require.NoError(n, n.StartContainer(n.ctx, id))
		time.Sleep(2 * time.Second)
		n.exited(id, 1, "Error", time.Second)
		text, err := os.ReadFile(file)
		require.NoError(n, err)
		assert.Equal(n, "out of luck", string(text))
	})
}

func TestATestEndsContainers(t *testing.T) {
	on(t, fakecri.Config{}, func(n *node) {
		sandbox := n.sandbox("a")
		for i, end := range []func() error{
			func() error { return n.Exit("a", "web", 7) },
			func() error { return n.Kill("a", "web") },
			func() error { return n.OOM("a", "web") },
		} {
			id := n.created(sandbox, "a", "web", uint32(i))
			require.NoError(n, n.StartContainer(n.ctx, id))
			require.NoError(n, end())
			assert.ErrorContains(n, end(), "no container web of pod a runs")
		}
		var ends []string
		for _, c := range n.Containers("a") {
			ends = append(ends, c.Reason)
			assert.Equal(n, fakecri.Exited, c.State)
		}
		assert.Equal(n, []string{"Error", "Error", "OOMKilled"}, ends)
	})
}
