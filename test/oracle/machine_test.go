package oracle

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
)

// start makes the pod of a scenario's first step run its container "c", and returns the IDs.
func start(t *testing.T, m *machine, s Step) (sandbox, id string) {
	ctx := t.Context()
	config := &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: s.Pod, Namespace: "default", Uid: "uid"}}
	sandbox, err := m.RunPodSandbox(ctx, config, "")
	require.NoError(t, err)
	image := s.pod().Spec.Containers[0].Image
	_, err = m.PullImage(ctx, &runtimeapi.ImageSpec{Image: image}, nil, config)
	require.NoError(t, err)
	id, err = m.CreateContainer(ctx, sandbox, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "c"}, Image: &runtimeapi.ImageSpec{Image: image, UserSpecifiedImage: image},
	}, config)
	require.NoError(t, err)
	require.NoError(t, m.StartContainer(ctx, id))
	return sandbox, id
}

// onMachine calls test with the machine of a scenario, in virtual time.
func onMachine(t *testing.T, text string, test func(t *testing.T, m *machine, s Scenario)) {
	synctest.Test(t, func(t *testing.T) {
		s := mustParse(t, text)
		m, err := newMachine(s, 1, newRecorder())
		require.NoError(t, err)
		test(t, m, s)
	})
}

// A kubelet under load may write a status before the change that it is about is observed.
func TestAChangeIsRecordedAtItsTime(t *testing.T) {
	onMachine(t, "0s add web main:c=run", func(t *testing.T, m *machine, _ Scenario) {
		at := time.Now()
		time.Sleep(time.Second)
		m.recorder.mark("status")
		m.observe(fakecri.Change{At: at, Pod: "uid", ID: "s", To: fakecri.Ready})
		records := m.recorder.all()
		require.Len(t, records, 2)
		assert.NotNil(t, records[0].Change)
		assert.Equal(t, time.Second, records[1].At-records[0].At)
	})
}

func TestProbesFollowTheBehavior(t *testing.T) {
	onMachine(t, "0s add web main:c=started=2s,ready=3s,unhealthy=5s", func(t *testing.T, m *machine, s Scenario) {
		_, id := start(t, m, s[0])
		results := func() (out [3]bool) {
			for i, kind := range []string{"Startup", "Readiness", "Liveness"} {
				_, _, err := m.ExecSync(t.Context(), id, []string{probeCommand, kind}, time.Second)
				out[i] = err == nil
			}
			return out
		}
		assert.Equal(t, [3]bool{false, false, true}, results())
		time.Sleep(4 * time.Second)
		assert.Equal(t, [3]bool{true, true, true}, results())
		time.Sleep(2 * time.Second)
		assert.Equal(t, [3]bool{true, true, false}, results())
	})
}

func TestACleanContainerExitsWithZeroOnTERM(t *testing.T) {
	onMachine(t, "0s add web main:c=run clean:c", func(t *testing.T, m *machine, s Scenario) {
		_, id := start(t, m, s[0])
		m.setClean("uid", s[0].Clean)
		require.NoError(t, m.StopContainer(t.Context(), id, 5))
		last := m.recorder.records[len(m.recorder.records)-2]
		require.NotNil(t, last.Change)
		assert.Equal(t, Change{Pod: "uid", Container: "c", ID: id, Sandbox: last.Change.Sandbox, Image: last.Change.Image, To: "exited", Reason: "Completed", Stopped: true}, *last.Change)
	})
}

func TestAHookEndsWithItsContainer(t *testing.T) {
	onMachine(t, "0s add web main:c=run hook:c=1m", func(t *testing.T, m *machine, s Scenario) {
		_, id := start(t, m, s[0])
		time.AfterFunc(time.Second, func() { _ = m.Exit("uid", "c", 1) })
		began := time.Now()
		_, _, err := m.ExecSync(t.Context(), id, []string{"hook", "1m"}, 0)
		assert.Error(t, err)
		assert.Less(t, time.Since(began), 2*time.Second)
	})
}

func TestAnExitWithZeroMayBeForLackOfMemory(t *testing.T) {
	onMachine(t, "0s add web main:c=exit=0@1s,reason=OOMKilled", func(t *testing.T, m *machine, s Scenario) {
		_, id := start(t, m, s[0])
		time.Sleep(2 * time.Second)
		resp, err := m.ContainerStatus(t.Context(), id, false)
		require.NoError(t, err)
		assert.Equal(t, "OOMKilled", resp.Status.Reason)
		assert.Zero(t, resp.Status.ExitCode)
	})
}

func TestFaultsLastForTheirTime(t *testing.T) {
	onMachine(t, "0s add web main:c=run\n1s fault StopContainer kind=error for=2s", func(t *testing.T, m *machine, s Scenario) {
		_, id := start(t, m, s[0])
		m.fail(s[1])
		assert.ErrorContains(t, m.StopContainer(t.Context(), id, 1), "fault of the scenario")
		m.remove(t.Context(), "uid", "c") // by an operator, without faults
		assert.Empty(t, m.Containers("uid"))
		time.Sleep(3 * time.Second)
		assert.NoError(t, m.StopContainer(t.Context(), id, 1))
	})
}

func TestACallIsInterrupted(t *testing.T) {
	for _, after := range []bool{false, true} {
		onMachine(t, "0s add web main:c=run", func(t *testing.T, m *machine, s Scenario) {
			_, id := start(t, m, s[0])
			called := 0
			m.onCall(1, func() bool { called++; return after })
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			assert.Error(t, m.StopContainer(ctx, id, 5), "it is not answered")
			assert.Equal(t, 1, called)
			assert.Equal(t, after, m.Containers("uid")[0].State == fakecri.Exited)
		})
	}
}

func TestACrashStopsTheSandbox(t *testing.T) {
	onMachine(t, "0s add web main:c=run", func(t *testing.T, m *machine, s Scenario) {
		start(t, m, s[0])
		m.crash("uid")
		assert.Equal(t, fakecri.Exited, m.Containers("uid")[0].State)
		assert.Equal(t, fakecri.NotReady, m.Sandboxes("uid")[0].State)
	})
}
