package cri_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// A recorder stores the requests that create sandboxes and containers.
type recorder struct {
	internalapi.RuntimeService
	sandboxes  []*runtimeapi.PodSandboxConfig
	containers []*runtimeapi.ContainerConfig
}

func (r *recorder) RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	r.sandboxes = append(r.sandboxes, config)
	return r.RuntimeService.RunPodSandbox(ctx, config, handler)
}

func (r *recorder) CreateContainer(ctx context.Context, sandbox string, config *runtimeapi.ContainerConfig, of *runtimeapi.PodSandboxConfig) (string, error) {
	r.containers = append(r.containers, config)
	return r.RuntimeService.CreateContainer(ctx, sandbox, config, of)
}

// Whatever a pod's spec contains, a sync returns: with requests that can be sent,
// are not out of proportion, and name files of this pod only, or with an error.
// Nothing is written outside the agent's directories.
func FuzzHostileSpec(f *testing.F) {
	files, err := filepath.Glob("podconfig/testdata/pods/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		if text, err = yaml.YAMLToJSON(text); err == nil {
			f.Add(text)
		}
	}
	var doubling []string // each value is twice the one before
	for i := range 40 {
		doubling = append(doubling, fmt.Sprintf(`{"name":"A%d","value":"x$(A%d)$(A%d)"}`, i, i-1, i-1))
	}
	for _, seed := range []string{
		`{"spec":{"containers":[{"name":"x","image":"i","env":[` + strings.Join(doubling, ",") + `]}]}}`,
		`{"spec":{"containers":[{"name":"x","image":"i","env":[{"name":"A","value":"` + strings.Repeat("x", 9<<10) + `"}],"args":["` + strings.Repeat("$(A)", 9<<10) + `"]}]}}`,
		`{}`,
		`{"metadata":{"name":"a","namespace":"b","uid":"u"},"spec":{"containers":[{"name":"x","image":"i"}]}}`,
		`{"metadata":{"name":"../../a","namespace":"../b","uid":"../../../u"},"spec":{"containers":[{"name":"../../../../x","image":"i"}]}}`,
		`{"metadata":{"name":"a","namespace":"b","uid":"u"},"spec":{"containers":[{"name":"../../../../x","image":"i","terminationMessagePath":"/m"}]}}`,
		`{"metadata":{"name":"a/b","namespace":"b","uid":"u"},"spec":{"containers":[{"name":"x/y","image":"i"}]}}`,
		`{"metadata":{"uid":"."},"spec":{"hostNetwork":true,"containers":[{"name":"..","image":"i","terminationMessagePath":"/m"}]}}`,
		`{"metadata":{"name":"a\u0000","namespace":"\ud800","uid":"u"},"spec":{"hostname":"\n","hostAliases":[{"ip":"1.2.3.4","hostnames":["a\nb"]}],"containers":[{"name":"x\u0000","image":"\n"}]}}`,
		`{"metadata":{"uid":"u"},"spec":{"containers":[{"name":"x","image":"i","env":[{"name":"A","value":"$(A)$(B)"},{"name":"B","value":"$(A)$(A)"},{"name":"C","value":"$(B)$(B)$(B)"}]}]}}`,
		`{"metadata":{"uid":"u"},"spec":{"initContainers":[{"name":"x"},{"name":"x"}],"containers":[{"name":"x"},{"name":""}],"ephemeralContainers":[{"name":"x"}]}}`,
		`{"metadata":{"uid":"u"},"spec":{"containers":[{"name":"x","image":"i","ports":[{"containerPort":-1,"hostPort":70000}],"resources":{"limits":{"cpu":"-1","memory":"9e99"}},"volumeMounts":[{"name":"v","mountPath":"../..","subPath":"../.."}]}]}}`,
		`{"metadata":{"uid":"u"},"spec":{"terminationGracePeriodSeconds":-9223372036854775808,"containers":[{"name":"x","image":"i","lifecycle":{"postStart":{"sleep":{"seconds":9223372036854775807}}}}]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		pod := new(v1.Pod)
		if len(text) > 64<<10 || json.Unmarshal(text, pod) != nil {
			return
		}
		// Without a name nothing of a pod is used.
		pod.Name, pod.Namespace, pod.UID = cmp.Or(pod.Name, "a"), cmp.Or(pod.Namespace, "b"), cmp.Or(pod.UID, "u")
		withoutRequests(pod)
		synctest.Test(t, func(t *testing.T) { syncHostile(t, pod, len(text)) })
	})
}

// withoutRequests removes the hooks that send requests: they would leave the test.
func withoutRequests(pod *v1.Pod) {
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if l := list[i].Lifecycle; l != nil {
				for _, h := range []*v1.LifecycleHandler{l.PostStart, l.PreStop} {
					if h != nil {
						h.HTTPGet = nil
					}
				}
			}
		}
	}
}

func syncHostile(t *testing.T, pod *v1.Pod, size int) {
	outside := t.TempDir()
	dir := filepath.Join(outside, "1", "2", "3", "4", "5", "6")
	fake := newFake()
	requests := &recorder{RuntimeService: fake}
	rt, err := cri.New(cri.Config{
		Name: "fake", Runtime: requests, Images: fake,
		Dirs: cri.Dirs{Root: dir + "/root", PodLogs: dir + "/logs", ContainerLogs: dir + "/links"},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
	defer cancel()
	for range 3 {
		st, err := rt.PodStatus(ctx, pod.UID)
		if err != nil {
			break
		}
		_, _ = rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod, Status: st})
	}
	_ = rt.KillPod(ctx, runtime.KillRequest{UID: pod.UID, Pod: pod})
	_ = rt.CollectGarbage(ctx, removed(pod.UID))
	require.NoError(t, filepath.WalkDir(outside, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasPrefix(path, dir+"/") {
			assert.Fail(t, "a file outside the agent's directories", path)
		}
		return err
	}))
	inside := func(path string) {
		assert.True(t, path == "" || strings.HasPrefix(filepath.Clean(path), dir+"/"), "the path %q is outside of the agent's directories", path)
	}
	for _, s := range requests.sandboxes {
		inside(s.GetLogDirectory())
		sendable(t, s, size)
	}
	for _, c := range requests.containers {
		assert.True(t, c.GetLogPath() == "" || filepath.IsLocal(c.GetLogPath()), "log path %q", c.GetLogPath())
		for _, m := range c.GetMounts() {
			inside(m.GetHostPath()) // the pod has no volumes here
		}
		sendable(t, c, size)
	}
}

// sendable asserts that a request can be encoded and is in proportion to the spec.
func sendable(t *testing.T, m proto.Message, size int) {
	t.Helper()
	data, err := proto.Marshal(m)
	assert.NoError(t, err)
	assert.Less(t, len(data), 1<<20+64*size)
}
