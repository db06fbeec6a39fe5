package oracle

import (
	"context"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/runtime/cri/remote"
	"github.com/kubeparts/kubeparts/sim/record"
	"github.com/kubeparts/kubeparts/sim/replay"
)

func TestATapRecordsAKubeletFromOutside(t *testing.T) {
	dir := t.TempDir()
	onMachine(t, "0s add web main:c=ready=2s hook:c=1s", func(t *testing.T, m *machine, s Scenario) {
		tap, err := newTap(dir, "n", runtimeName)
		require.NoError(t, err)
		pod := s[0].pod()
		pod.UID = "uid"
		ctx, stop := context.WithCancel(t.Context())
		tap.observe(ctx, pod, false)
		process, err := tap.newProcess(nil)
		require.NoError(t, err)
		ended := make(chan error, 1)
		go func() { ended <- process.recorder.Run(ctx) }()
		synctest.Wait()
		rt, images := process.services(m, m)
		config := &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: "web", Namespace: "default", Uid: "uid"}}
		sandbox, err := rt.RunPodSandbox(ctx, config, "")
		require.NoError(t, err)
		image := &runtimeapi.ImageSpec{Image: pod.Spec.Containers[0].Image, UserSpecifiedImage: pod.Spec.Containers[0].Image}
		_, err = images.PullImage(ctx, image, nil, config)
		require.NoError(t, err)
		id, err := rt.CreateContainer(ctx, sandbox, &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{Name: "c"}, Image: image}, config)
		require.NoError(t, err)
		require.NoError(t, rt.StartContainer(ctx, id))
		_, _, err = rt.ExecSync(ctx, id, []string{probeCommand, "Readiness"}, time.Second)
		require.Error(t, err)
		_, _, err = rt.ExecSync(ctx, id, []string{"hook", "5s"}, 0)
		require.NoError(t, err)
		_, _, err = rt.ExecSync(ctx, id, []string{probeCommand, "Readiness"}, time.Second)
		require.NoError(t, err)
		running := pod.DeepCopy()
		running.Status.Phase = v1.PodRunning
		running.ManagedFields = managedAt(kubeletManager, 1)
		tap.observe(ctx, running, false)
		other := running.DeepCopy()
		other.Status.Reason = "Lost"
		other.ManagedFields = append(managedAt(kubeletManager, 1), managedAt("another", 2)...)
		tap.observe(ctx, other, false)
		deleting := other.DeepCopy()
		deleting.DeletionTimestamp = new(metav1.Now())
		tap.observe(ctx, deleting, false)
		tap.observe(ctx, deleting, true)
		synctest.Wait()
		stop()
		require.NoError(t, <-ended)
	})
	files, err := record.Files(processDir(dir, 1))
	require.NoError(t, err)
	var calls, probes, pods, statuses []string
	for f, err := range record.ReadFiles(files...) {
		require.NoError(t, err)
		switch {
		case f.Agent != nil:
			assert.Equal(t, record.Agent{Sources: []string{"api"}, Probes: true}, *f.Agent)
		case f.Call != nil:
			calls = append(calls, f.Call.Method)
		case f.Probe != nil:
			assert.Equal(t, []any{"uid", "c"}, []any{string(f.Probe.Pod), f.Probe.Container})
			probes = append(probes, f.Probe.Kind+" "+f.Probe.Result)
		case f.Pods != nil && len(f.Pods.Removed) > 0:
			pods = append(pods, "removed")
		case f.Pods != nil && len(f.Pods.Changed) > 0:
			pods = append(pods, string(f.Pods.Changed[0].Status.Phase))
		case f.Status != nil && f.Status.Status != nil:
			statuses = append(statuses, string(f.Status.Status.Phase))
		case f.Status != nil:
			statuses = append(statuses, "deleted")
		}
	}
	assert.Equal(t, []string{"RunPodSandbox", "PullImage", "CreateContainer", "StartContainer", "ExecSync", "ExecSync", "ExecSync"}, calls)
	assert.Equal(t, []string{"Readiness failure", "Readiness success"}, probes, "without the hook")
	assert.Equal(t, []string{"", "Running", "Running", "Running", "removed"}, pods)
	assert.Equal(t, []string{"Running", "deleted"}, statuses, "without the other client's")
	_, err = newTap(dir, "n", runtimeName)
	assert.ErrorContains(t, err, "contains a recording")
}

// managedAt returns the entry of a manager of a status that has written it at a time.
func managedAt(manager string, at int64) []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{{Manager: manager, Subresource: "status", Time: new(metav1.Unix(at, 0))}}
}

func TestTheWriterOfAStatusIsFound(t *testing.T) {
	first := append(managedAt(kubeletManager, 5), managedAt("another", 5)...)
	for name, tc := range map[string]struct {
		after []metav1.ManagedFieldsEntry
		other bool
	}{
		"kubelet":               {append(managedAt(kubeletManager, 6), managedAt("another", 5)...), false},
		"another":               {append(managedAt(kubeletManager, 5), managedAt("another", 6)...), true},
		"a new one":             {append(first[:2:2], managedAt("third", 5)...), true},
		"within a second":       {first, false},
		"both":                  {append(managedAt("another", 6), managedAt(kubeletManager, 6)...), false},
		"not the status":        {append(first[:2:2], metav1.ManagedFieldsEntry{Manager: "labels", Time: new(metav1.Unix(7, 0))}), false},
		"no fields are managed": {nil, false},
	} {
		assert.Equal(t, tc.other, writtenByOther(first, tc.after), name)
	}
}

func TestARecordingRequiresADirectory(t *testing.T) {
	assert.ErrorContains(t, recordCommand(t.Context(), []string{"s.txt"}, t.Output()), "requires --dir")
}

func TestANodeIsTapped(t *testing.T) {
	dir := t.TempDir()
	m, err := newMachine(nil, 1, newRecorder())
	require.NoError(t, err)
	p := &player{machine: m}
	stopRuntime, err := p.serve(t.Context(), dir+"/runtime.sock")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, stopRuntime()) })
	api := new(apitest.Server)
	pod := mustParse(t, "0s add web main:c=run")[0].pod()
	api.Put(pod)
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	kubeconfig := `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"` + server.URL + `"}}],"contexts":[{"name":"x","context":{"cluster":"c"}}],"current-context":"x"}`
	require.NoError(t, os.WriteFile(dir+"/kubeconfig", []byte(kubeconfig), 0o600))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- tapCommand(ctx, []string{"--runtime", "unix://" + dir + "/runtime.sock", "--listen", "unix://" + dir + "/tap.sock", "--kubeconfig", dir + "/kubeconfig", "--node", nodeName, "--dir", dir + "/rec"}, t.Output())
	}()
	require.Eventually(t, func() bool { _, err := os.Stat(dir + "/tap.sock"); return err == nil }, 30*time.Second, 10*time.Millisecond)
	connect := func() *remote.Client {
		client, err := remote.Dial(t.Context(), "unix://"+dir+"/tap.sock", remote.Config{})
		require.NoError(t, err)
		return client
	}
	recorded := func(process int) (seen []string, complete bool) {
		files, err := record.Files(processDir(dir+"/rec", process))
		if err != nil {
			return nil, false
		}
		for f, err := range record.ReadFiles(files...) {
			switch {
			case err != nil:
				return nil, false
			case f.End != nil:
				complete = true
			case f.Pods != nil && len(f.Pods.Changed) > 0:
				seen = append(seen, f.Pods.Changed[0].Name)
			case f.Call != nil:
				seen = append(seen, f.Call.Method)
			}
		}
		return seen, complete
	}

	first := connect()
	assert.Equal(t, runtimeName, first.Name)
	sandbox, err := first.Runtime.RunPodSandbox(t.Context(), &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: "web", Uid: "uid"}}, "")
	require.NoError(t, err)
	require.NoError(t, first.Close(t.Context()))
	require.Eventually(t, func() bool { _, complete := recorded(1); return complete }, 30*time.Second, 10*time.Millisecond, "the process has ended")

	second := connect()
	require.NoError(t, second.Runtime.StopPodSandbox(t.Context(), sandbox))
	third := connect() // of the same process
	_, err = third.Images.ImageFsInfo(t.Context())
	require.NoError(t, err)
	require.NoError(t, third.Close(t.Context()))
	_, err = second.Runtime.ListPodSandbox(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, second.Close(t.Context()))
	stop()
	require.NoError(t, <-ended)

	seen, _ := recorded(1)
	assert.Contains(t, seen, "web")
	assert.Contains(t, seen, "RunPodSandbox")
	assert.NotContains(t, seen, "StopPodSandbox")
	seen, complete := recorded(2)
	assert.Subset(t, seen, []string{"web", "StopPodSandbox", "ImageFsInfo", "ListPodSandbox"})
	assert.NotContains(t, seen, "RunPodSandbox")
	assert.True(t, complete)
	assert.NoDirExists(t, processDir(dir+"/rec", 3))
	recording, err := replay.Open(processDir(dir+"/rec", 2))
	require.NoError(t, err)
	assert.Equal(t, nodeName, recording.Header.Node)
	assert.NoError(t, replayProcesses(t.Context(), dir+"/rec", t.Output()))
	assert.ErrorContains(t, tapCommand(t.Context(), nil, t.Output()), "requires --listen")
}
