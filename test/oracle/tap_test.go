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
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- tap.run(ctx) }()
		synctest.Wait()
		pod := s[0].pod()
		pod.UID = "uid"
		tap.observe(ctx, pod, false)
		rt, images := tap.services(m, m)
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
		tap.observe(ctx, running, false)
		deleting := running.DeepCopy()
		deleting.DeletionTimestamp = new(metav1.Now())
		tap.observe(ctx, deleting, false)
		tap.observe(ctx, deleting, true)
		synctest.Wait()
		stop()
		require.NoError(t, <-ended)
	})
	files, err := record.Files(dir)
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
	assert.Equal(t, []string{"", "Running", "Running", "removed"}, pods)
	assert.Equal(t, []string{"Running", "deleted"}, statuses)
}

func TestARecordingIsOfOneProcess(t *testing.T) {
	file := t.TempDir() + "/s.txt"
	require.NoError(t, os.WriteFile(file, []byte("0s add web main:c=run\n1s kill down=1s\n"), 0o644))
	err := recordCommand(t.Context(), []string{file, "--dir", t.TempDir(), "--kubelet", file}, t.Output())
	assert.ErrorContains(t, err, "1s kill down=1s: a recording is of one process")
	assert.ErrorContains(t, recordCommand(t.Context(), []string{file}, t.Output()), "requires --dir")
}

func TestANodeIsTapped(t *testing.T) {
	dir := t.TempDir()
	m, err := newMachine(nil, 1, newRecorder())
	require.NoError(t, err)
	p := &player{machine: m}
	require.NoError(t, p.serve(t.Context(), t, dir+"/runtime.sock"))
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
	var client *remote.Client
	require.Eventually(t, func() bool {
		client, err = remote.Dial(t.Context(), "unix://"+dir+"/tap.sock", remote.Config{})
		return err == nil
	}, 30*time.Second, 10*time.Millisecond)
	assert.Equal(t, runtimeName, client.Name)
	_, err = client.Runtime.RunPodSandbox(t.Context(), &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: "web", Uid: "uid"}}, "")
	require.NoError(t, err)
	require.NoError(t, client.Close(t.Context()))
	stop()
	require.NoError(t, <-ended)
	recording, err := replay.Open(dir + "/rec")
	require.NoError(t, err)
	assert.Equal(t, nodeName, recording.Header.Node)
	var seen []string
	files, err := record.Files(dir + "/rec")
	require.NoError(t, err)
	for f, err := range record.ReadFiles(files...) {
		require.NoError(t, err)
		if f.Pods != nil && len(f.Pods.Changed) > 0 {
			seen = append(seen, f.Pods.Changed[0].Name)
		} else if f.Call != nil {
			seen = append(seen, f.Call.Method)
		}
	}
	assert.Contains(t, seen, "web")
	assert.Contains(t, seen, "RunPodSandbox")
	assert.ErrorContains(t, tapCommand(t.Context(), nil, t.Output()), "requires --listen")
}
