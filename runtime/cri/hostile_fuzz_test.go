package cri_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// A babbler is a CRI runtime whose every response is generated from bytes, limited
// only by Go's types. Just one thing is reliable: an ID that it lists belongs to
// the pod in its labels, as ownership cannot be determined otherwise.
type babbler struct {
	internalapi.RuntimeService
	dir string

	mu      sync.Mutex
	bytes   []byte
	n       int
	touched []string // IDs that were stopped or removed
}

// byte returns the next byte, and zero after the last.
func (b *babbler) byte() byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.bytes) == 0 {
		return 0
	}
	next := b.bytes[0]
	b.bytes = b.bytes[1:]
	return next
}

func anyOf[T any](b *babbler, of ...T) T { return of[int(b.byte())%len(of)] }

// fails returns a random error, but nil in most cases.
func (b *babbler) fails(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return anyOf(b, nil, nil, nil, nil, nil, nil, status.Error(codes.NotFound, "no such thing"), errors.New("no reason"),
		status.Error(codes.DeadlineExceeded, "too late"))
}

func (b *babbler) number() int64 {
	return anyOf(b, 0, 1, time.Now().UnixNano(), time.Now().Add(-time.Hour).UnixNano(), -1, int64(-1)<<63, int64(^uint64(0)>>1))
}

func (b *babbler) text() string {
	return anyOf(b, "web", "", "setup", "proxy", "log", "0", "7", "2147483647", "-1", "8e45cbd0", "{", "null", "../../..", "\xff\x00",
		`{"exec":{"command":[]}}`, `{"sleep":{"seconds":5}}`, `{"sleep":{"seconds":9223372036854775807}}`, `{"tcpSocket":{}}`,
		`[{"containerPort":-1}]`, "/dev/termination-log", "FallbackToLogsOnError", "prod", "u-1", "u-2",
		filepath.Join(b.dir, "logs"), filepath.Join(b.dir, "logs", "prod_web_u-1", "web", "0.log"), "/", "/dev/null")
}

func (b *babbler) annotations() map[string]string {
	if b.byte()%4 == 0 {
		return nil
	}
	a := map[string]string{}
	for _, key := range []string{
		"io.kubernetes.container.hash", "io.kubernetes.container.restartCount", "io.kubernetes.container.terminationMessagePath",
		"io.kubernetes.container.terminationMessagePolicy", "io.kubernetes.pod.deletionGracePeriod", "io.kubernetes.pod.terminationGracePeriod",
		"io.kubernetes.container.preStopHandler", "io.kubernetes.container.ports",
	} {
		if b.byte()%2 == 0 {
			a[key] = b.text()
		}
	}
	return a
}

// labels returns labels with the correct owner; an empty uid means no owner.
func (b *babbler) labels(uid string) map[string]string {
	l := map[string]string{"app": b.text()}
	if uid != "" {
		l["io.kubernetes.pod.uid"], l["io.kubernetes.pod.name"] = uid, b.text()
		l["io.kubernetes.pod.namespace"], l["io.kubernetes.container.name"] = b.text(), b.text()
	}
	return l
}

// owner returns the UID of the pod that an ID belongs to, which is its prefix.
func owner(id string) string {
	uid, _, _ := strings.Cut(id, "/")
	return strings.TrimPrefix(uid, "foreign")
}

func (b *babbler) ids(kind string) []string {
	var ids []string
	for range b.byte() % 6 {
		ids = append(ids, fmt.Sprintf("%s/%s%d", anyOf(b, "u-1", "u-1", "u-1", "u-2", "foreign"), kind, b.byte()%4))
	}
	return ids
}

func (b *babbler) containerMetadata() *runtimeapi.ContainerMetadata {
	return anyOf(b, &runtimeapi.ContainerMetadata{Name: b.text(), Attempt: uint32(b.number())}, &runtimeapi.ContainerMetadata{Name: "web"}, nil)
}

func (b *babbler) ListPodSandbox(ctx context.Context, _ *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	var list []*runtimeapi.PodSandbox
	for _, id := range b.ids("s") {
		uid := owner(id)
		list = append(list, anyOf(b, nil, &runtimeapi.PodSandbox{
			Id: id, State: runtimeapi.PodSandboxState(b.number()), CreatedAt: b.number(), Labels: b.labels(uid),
			Metadata: anyOf(b, &runtimeapi.PodSandboxMetadata{Uid: uid, Name: b.text(), Attempt: uint32(b.number())},
				&runtimeapi.PodSandboxMetadata{Uid: anyOf(b, uid, b.text(), "u-1")}, nil),
		}, &runtimeapi.PodSandbox{Id: id, Labels: b.labels(uid), Metadata: &runtimeapi.PodSandboxMetadata{Uid: uid, Name: "web", Namespace: "prod"}}))
	}
	return list, b.fails(ctx)
}

func (b *babbler) ListContainers(ctx context.Context, _ *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	var list []*runtimeapi.Container
	for _, id := range b.ids("c") {
		list = append(list, anyOf(b, nil, &runtimeapi.Container{
			Id: id, PodSandboxId: anyOf(b, "", "u-1/s0", "u-1/s1", "foreign/s0"), State: runtimeapi.ContainerState(b.number()), CreatedAt: b.number(),
			Labels: b.labels(owner(id)), Annotations: b.annotations(), Metadata: b.containerMetadata(),
		}, &runtimeapi.Container{Id: id, Labels: b.labels(owner(id)), Metadata: &runtimeapi.ContainerMetadata{Name: "web"}}))
	}
	return list, b.fails(ctx)
}

func (b *babbler) PodSandboxStatus(ctx context.Context, id string, _ bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	return anyOf(b, &runtimeapi.PodSandboxStatusResponse{Status: &runtimeapi.PodSandboxStatus{
		Id: anyOf(b, id, id, id, "", "foreign/s0"), State: runtimeapi.PodSandboxState(b.byte() % 3), CreatedAt: b.number(),
		Metadata: anyOf(b, &runtimeapi.PodSandboxMetadata{Name: "web", Namespace: "prod", Uid: "u-1", Attempt: uint32(b.number())}, nil),
		Network:  anyOf(b, nil, &runtimeapi.PodSandboxNetworkStatus{Ip: "10.0.0.7", AdditionalIps: []*runtimeapi.PodIP{nil}}, &runtimeapi.PodSandboxNetworkStatus{Ip: b.text()}),
	}}, &runtimeapi.PodSandboxStatusResponse{}, nil), b.fails(ctx)
}

func (b *babbler) ContainerStatus(ctx context.Context, id string, _ bool) (*runtimeapi.ContainerStatusResponse, error) {
	return anyOf(b, &runtimeapi.ContainerStatusResponse{Status: &runtimeapi.ContainerStatus{
		Id: anyOf(b, id, id, id, id, "", "foreign/c0"), Metadata: b.containerMetadata(), State: runtimeapi.ContainerState(b.byte() % 5),
		CreatedAt: b.number(), StartedAt: b.number(), FinishedAt: b.number(), ExitCode: int32(b.number()), Reason: b.text(),
		Image: anyOf(b, nil, &runtimeapi.ImageSpec{Image: b.text()}), Labels: b.labels(b.text()), Annotations: b.annotations(), LogPath: b.text(),
		Mounts: []*runtimeapi.Mount{nil, {ContainerPath: b.text(), HostPath: b.text()}},
		Resources: anyOf(b, nil, &runtimeapi.ContainerResources{}, &runtimeapi.ContainerResources{Linux: &runtimeapi.LinuxContainerResources{
			CpuShares: b.number(), CpuQuota: b.number(), CpuPeriod: b.number(), MemoryLimitInBytes: b.number(),
		}}),
	}}, &runtimeapi.ContainerStatusResponse{}, nil), b.fails(ctx)
}

func (b *babbler) make(ctx context.Context, kind string) (string, error) {
	b.mu.Lock()
	b.n++
	id := fmt.Sprintf("u-1/%s-made-%d", kind, b.n)
	b.mu.Unlock()
	return anyOf(b, id, id, id, ""), b.fails(ctx)
}

func (b *babbler) RunPodSandbox(ctx context.Context, _ *runtimeapi.PodSandboxConfig, _ string) (string, error) {
	return b.make(ctx, "s")
}

func (b *babbler) CreateContainer(ctx context.Context, _ string, _ *runtimeapi.ContainerConfig, _ *runtimeapi.PodSandboxConfig) (string, error) {
	return b.make(ctx, "c")
}

func (b *babbler) touch(ctx context.Context, id string) error {
	b.mu.Lock()
	b.touched = append(b.touched, id)
	b.mu.Unlock()
	return b.fails(ctx)
}

func (b *babbler) StartContainer(ctx context.Context, _ string) error { return b.fails(ctx) }
func (b *babbler) StopContainer(ctx context.Context, id string, _ int64) error {
	return b.touch(ctx, id)
}
func (b *babbler) RemoveContainer(ctx context.Context, id string) error  { return b.touch(ctx, id) }
func (b *babbler) StopPodSandbox(ctx context.Context, id string) error   { return b.touch(ctx, id) }
func (b *babbler) RemovePodSandbox(ctx context.Context, id string) error { return b.touch(ctx, id) }
func (b *babbler) UpdateContainerResources(ctx context.Context, id string, _ *runtimeapi.ContainerResources) error {
	return b.touch(ctx, id)
}

func (b *babbler) UpdatePodSandboxResources(ctx context.Context, _ *runtimeapi.UpdatePodSandboxResourcesRequest) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	return nil, b.fails(ctx)
}

func (b *babbler) ExecSync(ctx context.Context, _ string, _ []string, _ time.Duration) ([]byte, []byte, error) {
	return []byte(b.text()), nil, b.fails(ctx)
}

func (b *babbler) Status(ctx context.Context, _ bool) (*runtimeapi.StatusResponse, error) {
	return anyOf(b, nil, &runtimeapi.StatusResponse{}, &runtimeapi.StatusResponse{Status: &runtimeapi.RuntimeStatus{
		Conditions: []*runtimeapi.RuntimeCondition{nil, {Type: "RuntimeReady", Status: true}},
	}}), b.fails(ctx)
}

func (b *babbler) Close(context.Context) error { return nil }

// babblerImages is the image service of a babbler.
type babblerImages struct {
	internalapi.ImageManagerService
	*babbler
}

func (b babblerImages) Close(context.Context) error { return nil }

func (b babblerImages) ImageStatus(ctx context.Context, _ *runtimeapi.ImageSpec, _ bool) (*runtimeapi.ImageStatusResponse, error) {
	return anyOf(b.babbler, nil, &runtimeapi.ImageStatusResponse{}, &runtimeapi.ImageStatusResponse{Image: &runtimeapi.Image{
		Id: b.text(), Username: b.text(), Uid: anyOf(b.babbler, nil, &runtimeapi.Int64Value{Value: b.number()}), Size: uint64(b.number()),
		RepoTags: []string{b.text()}, RepoDigests: []string{b.text()},
	}}), b.fails(ctx)
}

func (b babblerImages) PullImage(ctx context.Context, _ *runtimeapi.ImageSpec, _ *runtimeapi.AuthConfig, _ *runtimeapi.PodSandboxConfig) (string, error) {
	return b.text(), b.fails(ctx)
}

func (b babblerImages) ListImages(ctx context.Context, _ *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error) {
	return []*runtimeapi.Image{nil, {Id: b.text()}}, b.fails(ctx)
}

// Whatever a runtime responds: nothing panics, every call returns, and nothing
// that belongs to another pod is stopped or removed.
func FuzzHostileRuntime(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x01\x00\x01\x01\x00\x00\x02\x03\x02\x00\x05\x05\x01"))
	for seed := range byte(12) {
		var data []byte
		for i := range 800 {
			data = append(data, byte(i)*(2*seed+1)^seed<<3^byte(i>>8)*37)
		}
		f.Add(data)
	}
	f.Fuzz(babble)
}

// babble runs a whole pod lifecycle on a babbler.
func babble(t *testing.T, data []byte) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		b := &babbler{bytes: data, dir: dir}
		rt, err := cri.New(cri.Config{
			Name: "fake", Runtime: b, Images: babblerImages{babbler: b},
			Dirs: cri.Dirs{Root: dir + "/root", PodLogs: dir + "/logs", ContainerLogs: dir + "/links"},
		})
		require.NoError(t, err)
		web := container("web")
		web.Lifecycle = &v1.Lifecycle{PostStart: execHook("x"), PreStop: execHook("x")}
		pod := podOf(web, container("log"))
		pod.Spec.InitContainers = []v1.Container{container("setup"), sidecar("proxy")}
		pod.Spec.RestartPolicy = anyOf(b, v1.RestartPolicyAlways, v1.RestartPolicyNever, v1.RestartPolicyOnFailure)
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		ours := func(what string, uids ...string) {
			for _, id := range b.touched {
				assert.True(t, slices.Contains(uids, owner(id)), "%s touched %q", what, id)
			}
			b.touched = nil
		}
		for range 3 {
			_, _ = rt.Pods(ctx)
			_, _ = rt.Check(ctx)
			st, _ := rt.PodStatus(ctx, pod.UID)
			ours("inspection")
			_, _ = rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod, Status: st})
			ours("SyncPod", "u-1")
			_ = rt.CollectGarbage(ctx, runtime.GCPolicy{Keep: func(types.UID) bool { return b.byte()%2 == 0 }})
			ours("CollectGarbage", "u-1", "u-2")
		}
		_ = rt.KillPod(ctx, runtime.KillRequest{UID: pod.UID, Pod: pod})
		_ = rt.KillPod(ctx, runtime.KillRequest{UID: pod.UID})
		ours("KillPod", "u-1")
		require.NoError(t, ctx.Err(), "a call hung")
	})
}
