package fakecri_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// checkpointing returns a runtime with checkpoints of pods, and a call to each method.
func checkpointing(t *testing.T, test func(n *node, sandbox string, ids []string, dir string)) {
	dir := t.TempDir()
	on(t, fakecri.Config{PodCheckpoints: true, Behaviors: fake.Behaviors{Containers: map[string]fake.Behavior{
		"job": {Exit: &fake.Exit{After: time.Minute, Code: 3}},
	}}}, func(n *node) {
		ctx, cancel := context.WithTimeout(n.ctx, time.Hour)
		defer cancel()
		n.ctx = ctx
		n.pull("registry.example/web:1")
		sandbox := n.sandbox("a")
		ids := []string{n.created(sandbox, "a", "job", 0), n.created(sandbox, "a", "web", 0)}
		for _, id := range ids {
			require.NoError(t, n.StartContainer(n.ctx, id))
		}
		time.Sleep(40 * time.Second)
		test(n, sandbox, ids, dir)
	})
}

func restoreOf(dir string, names ...string) *runtimeapi.RestorePodRequest {
	req := &runtimeapi.RestorePodRequest{CheckpointPath: dir, Config: podConfig("b")}
	for _, name := range names {
		req.ContainerConfigs = append(req.ContainerConfigs, containerConfig("b", name))
	}
	return req
}

// A restored pod has the containers of the checkpoint, created, and each continues its process.
func TestARestoredPodContinues(t *testing.T) {
	checkpointing(t, func(n *node, sandbox string, ids []string, dir string) {
		require.NoError(t, n.CheckpointPod(n.ctx, &runtimeapi.CheckpointPodRequest{PodSandboxId: sandbox, ContainerIds: ids, OutputPath: dir}))
		for _, id := range ids {
			n.runs(id)
		}
		require.NoError(t, n.RemovePodSandbox(n.ctx, sandbox))

		answer, err := n.RestorePod(n.ctx, restoreOf(dir, "web", "job"))
		require.NoError(t, err)
		byName := map[string]string{}
		for _, c := range answer.RestoredContainers {
			byName[c.Name] = c.ContainerId
			assert.Equal(t, runtimeapi.ContainerState_CONTAINER_CREATED, n.look(c.ContainerId).State)
			assert.NotContains(t, ids, c.ContainerId)
		}
		require.Len(t, byName, 2)
		time.Sleep(time.Minute) // nothing runs before it is started
		for _, id := range byName {
			require.NoError(t, n.StartContainer(n.ctx, id))
			assert.Error(t, n.StartContainer(n.ctx, id), "no container runs twice")
		}
		time.Sleep(20*time.Second - time.Millisecond)
		n.runs(byName["job"])
		time.Sleep(time.Millisecond)
		synctest.Wait()
		assert.Equal(t, int32(3), n.look(byName["job"]).ExitCode, "40 of its 60 seconds were before the checkpoint")
		n.runs(byName["web"])
		status, err := n.PodSandboxStatus(n.ctx, answer.PodSandboxId, false)
		require.NoError(t, err)
		assert.Equal(t, "b", status.Status.Metadata.Uid)
	})
}

func TestCheckpointsOfPodsThatAreRefused(t *testing.T) {
	checkpointing(t, func(n *node, sandbox string, ids []string, dir string) {
		full := filepath.Join(dir, "full")
		require.NoError(t, os.MkdirAll(filepath.Join(full, "x"), 0o700))
		empty := filepath.Join(dir, "empty")
		require.NoError(t, os.Mkdir(empty, 0o700))
		other := n.sandbox("c")
		stopped := n.created(sandbox, "a", "late", 0)
		for name, req := range map[string]*runtimeapi.CheckpointPodRequest{
			"no containers":         {PodSandboxId: sandbox, OutputPath: empty},
			"the same one twice":    {PodSandboxId: sandbox, OutputPath: empty, ContainerIds: []string{ids[0], ids[0]}},
			"one that does not run": {PodSandboxId: sandbox, OutputPath: empty, ContainerIds: []string{ids[0], stopped}},
			"of another pod":        {PodSandboxId: other, OutputPath: empty, ContainerIds: ids},
			"no such pod":           {PodSandboxId: "gone", OutputPath: empty, ContainerIds: ids},
			"options":               {PodSandboxId: sandbox, OutputPath: empty, ContainerIds: ids, Options: map[string]string{"a": "b"}},
			"a relative path":       {PodSandboxId: sandbox, OutputPath: "empty", ContainerIds: ids},
			"no directory":          {PodSandboxId: sandbox, OutputPath: filepath.Join(dir, "none"), ContainerIds: ids},
			"a full directory":      {PodSandboxId: sandbox, OutputPath: full, ContainerIds: ids},
		} {
			assert.Error(t, n.CheckpointPod(n.ctx, req), name)
		}
		good := &runtimeapi.CheckpointPodRequest{PodSandboxId: sandbox, OutputPath: empty, ContainerIds: ids}
		assert.ErrorContains(t, n.CheckpointPod(context.Background(), good), "deadline")
		files, err := os.ReadDir(empty)
		require.NoError(t, err)
		assert.Empty(t, files, "nothing partial remains")
		require.NoError(t, n.CheckpointPod(n.ctx, good))

		before, err := n.ListPodSandbox(n.ctx, nil)
		require.NoError(t, err)
		for name, change := range map[string]func(*runtimeapi.RestorePodRequest){
			"fewer containers":   func(r *runtimeapi.RestorePodRequest) { r.ContainerConfigs = r.ContainerConfigs[:1] },
			"another container":  func(r *runtimeapi.RestorePodRequest) { r.ContainerConfigs[1].Metadata.Name = "other" },
			"the same one twice": func(r *runtimeapi.RestorePodRequest) { r.ContainerConfigs[1].Metadata.Name = "job" },
			"another process":    func(r *runtimeapi.RestorePodRequest) { r.ContainerConfigs[1].Command = []string{"other"} },
			"another handler":    func(r *runtimeapi.RestorePodRequest) { r.RuntimeHandler = "runc" },
			"no pod":             func(r *runtimeapi.RestorePodRequest) { r.Config = nil },
			"options":            func(r *runtimeapi.RestorePodRequest) { r.Options = map[string]string{"a": "b"} },
			"no checkpoint":      func(r *runtimeapi.RestorePodRequest) { r.CheckpointPath = full },
			"a taken name":       func(r *runtimeapi.RestorePodRequest) { r.Config = podConfig("a") },
		} {
			req := restoreOf(empty, "job", "web")
			change(req)
			_, err := n.RestorePod(n.ctx, req)
			assert.Error(t, err, name)
		}
		after, err := n.ListPodSandbox(n.ctx, nil)
		require.NoError(t, err)
		assert.Len(t, after, len(before), "nothing remains of what failed")
		_, err = n.RestorePod(n.ctx, restoreOf(empty, "job", "web"))
		assert.NoError(t, err)
	})
}

// A checkpoint is a file of another program, which may have any size.
func TestCheckpointsOfPodsAreBounded(t *testing.T) {
	const limit = 16 << 20
	checkpointing(t, func(n *node, sandbox string, ids []string, dir string) {
		config := containerConfig("a", "large")
		config.Args = []string{strings.Repeat("x", limit)}
		large, err := n.CreateContainer(n.ctx, sandbox, config, podConfig("a"))
		require.NoError(t, err)
		require.NoError(t, n.StartContainer(n.ctx, large))
		err = n.CheckpointPod(n.ctx, &runtimeapi.CheckpointPodRequest{PodSandboxId: sandbox, ContainerIds: []string{large}, OutputPath: dir})
		assert.ErrorContains(t, err, "the limit is 16777216")

		require.NoError(t, n.CheckpointPod(n.ctx, &runtimeapi.CheckpointPodRequest{PodSandboxId: sandbox, ContainerIds: ids, OutputPath: dir}))
		file := filepath.Join(dir, "fakecri.json")
		require.NoError(t, os.Truncate(file, limit+1))
		_, err = n.RestorePod(n.ctx, restoreOf(dir, "job", "web"))
		assert.ErrorContains(t, err, "too large: more than 16777216 bytes")
		require.NoError(t, os.Remove(file))
		require.NoError(t, os.Symlink(os.DevNull, file))
		_, err = n.RestorePod(n.ctx, restoreOf(dir, "job", "web"))
		assert.ErrorContains(t, err, "not a regular file")
	})
}

func TestCheckpointsOfPodsAreOffByDefault(t *testing.T) {
	on(t, fakecri.Config{}, func(n *node) {
		assert.Equal(t, codes.Unimplemented, status.Code(n.CheckpointPod(n.ctx, &runtimeapi.CheckpointPodRequest{})))
		_, err := n.RestorePod(n.ctx, &runtimeapi.RestorePodRequest{})
		assert.Equal(t, codes.Unimplemented, status.Code(err))
	})
}
