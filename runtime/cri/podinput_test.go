package cri_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/userns"
)

// A handlersCRI is a fake with two runtime handlers; only one of them supports user
// namespaces.
type handlersCRI struct {
	*fakeCRI
	handler string // of the last sandbox
	asked   int    // how often it was asked what handlers can do
}

func (f *handlersCRI) RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	f.handler = handler
	return f.fakeCRI.RunPodSandbox(ctx, config, handler)
}

func (f *handlersCRI) Status(context.Context, bool) (*runtimeapi.StatusResponse, error) {
	f.asked++
	return &runtimeapi.StatusResponse{RuntimeHandlers: []*runtimeapi.RuntimeHandler{
		{},
		{Name: "able", Features: &runtimeapi.RuntimeHandlerFeatures{UserNamespaces: true, RecursiveReadOnlyMounts: true}},
	}}, nil
}

func (f *handlersCRI) engineOf(t *testing.T, cfg cri.Config) *cri.Runtime {
	t.Helper()
	dir := t.TempDir()
	cfg.Name, cfg.Runtime, cfg.Images = "fake", f, f.fakeCRI
	cfg.Dirs.Root, cfg.Dirs.PodLogs = dir+"/root", dir+"/logs"
	rt, err := cri.New(cfg)
	require.NoError(t, err)
	return rt
}

func classes(name string) (string, error) {
	if name == "sandboxed" {
		return "able", nil
	}
	return "", fmt.Errorf("runtimeclass.node.k8s.io %q not found", name)
}

func TestARuntimeClassNamesTheHandler(t *testing.T) { // rt-20, se-13
	pod := podOf(container("a"))
	pod.Spec.RuntimeClassName = new("sandboxed")
	f := &handlersCRI{fakeCRI: newFake()}
	f.has("img:1")
	var reported []string
	syncs(t, f.engineOf(t, cri.Config{Providers: cri.Providers{RuntimeClass: classes}, Hooks: cri.Hooks{Acted: func(i cri.ActInfo) { reported = append(reported, i.Handler) }}}), pod)
	assert.Equal(t, "able", f.handler)
	assert.Equal(t, []string{"able", ""}, reported, "of the sandbox, not of the container")
	assert.Zero(t, f.asked, "no field requires the handler's features")
}

func TestAnUnknownRuntimeClassFailsTheSandbox(t *testing.T) { // rt-20, rt-24
	for _, tc := range []struct {
		name string
		of   func(string) (string, error)
		want string
	}{
		{"absent", classes, `runtimeclass.node.k8s.io "gone" not found`},
		{"no provider", nil, `failed to get RuntimeClass "gone": Providers.RuntimeClass is nil`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pod := podOf(container("a"))
			pod.Spec.RuntimeClassName = new("gone")
			f := &handlersCRI{fakeCRI: newFake()}
			res, err := f.engineOf(t, cri.Config{Providers: cri.Providers{RuntimeClass: tc.of}}).SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
			require.Error(t, err)
			assert.Equal(t, "CreatePodSandboxError", res.Actions[0].Reason)
			assert.Equal(t, tc.want, res.Actions[0].Message)
			assert.Empty(t, f.sandboxes())
		})
	}
}

func TestAPodGetsItsUserNamespace(t *testing.T) { // se-13, se-17, se-20
	ids, err := userns.New(userns.Config{RootDir: t.TempDir(), Range: userns.Range{First: 131072, Length: 1 << 30}})
	require.NoError(t, err)
	want := "0-65535 are 131072-196607"
	shown := func(list []*runtimeapi.IDMapping) string {
		require.Len(t, list, 1)
		m := list[0]
		return fmt.Sprintf("%d-%d are %d-%d", m.ContainerId, m.ContainerId+m.Length-1, m.HostId, m.HostId+m.Length-1)
	}
	own := func(class string) *v1.Pod {
		pod := podOf(container("a"))
		pod.Spec.HostUsers = new(false)
		if class != "" {
			pod.Spec.RuntimeClassName = &class
		}
		return pod
	}
	t.Run("from the provider", func(t *testing.T) {
		f := &handlersCRI{fakeCRI: newFake()}
		f.has("img:1")
		syncs(t, f.engineOf(t, cri.Config{Providers: cri.Providers{RuntimeClass: classes, UserNamespaces: ids}}), own("sandboxed"))
		sandbox := f.sandboxes()[0].Config.Linux.SecurityContext.NamespaceOptions.UsernsOptions
		assert.Equal(t, runtimeapi.NamespaceMode_POD, sandbox.Mode)
		assert.Equal(t, want, shown(sandbox.Uids))
		config := f.newest("a").Config
		assert.Equal(t, want, shown(config.Linux.SecurityContext.NamespaceOptions.UsernsOptions.Gids))
		for _, m := range config.Mounts {
			assert.Equal(t, want, shown(m.UidMappings), m.ContainerPath)
		}
	})
	t.Run("adopted from a sandbox whose record was lost", func(t *testing.T) {
		f := &handlersCRI{fakeCRI: newFake()}
		f.has("img:1")
		syncs(t, f.engineOf(t, cri.Config{Providers: cri.Providers{RuntimeClass: classes, UserNamespaces: ids}}), own("sandboxed"))

		fresh, err := userns.New(userns.Config{RootDir: t.TempDir(), Range: userns.Range{First: 131072, Length: 1 << 30}})
		require.NoError(t, err)
		_, err = f.engineOf(t, cri.Config{Providers: cri.Providers{RuntimeClass: classes, UserNamespaces: fresh}}).PodStatus(t.Context(), own("").UID)
		require.NoError(t, err)
		other, err := fresh.Allocate("other")
		require.NoError(t, err)
		assert.NotContains(t, want, fmt.Sprint(other.UIDs[0].HostID))
		same, err := fresh.Allocate(own("").UID)
		require.NoError(t, err)
		assert.Contains(t, want, fmt.Sprint(same.UIDs[0].HostID))
	})
	for name, tc := range map[string]struct {
		class string
		cfg   cri.Config
		want  string
	}{
		"not with a handler without support": {"", cri.Config{Providers: cri.Providers{UserNamespaces: ids}}, "can't set `spec.hostUsers: false`, runtime does not support user namespaces"},
		"not without a provider":             {"sandboxed", cri.Config{Providers: cri.Providers{RuntimeClass: classes}}, "hostUsers: false: Providers.UserNamespaces is nil"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &handlersCRI{fakeCRI: newFake()}
			res, err := f.engineOf(t, tc.cfg).SyncPod(t.Context(), runtime.SyncRequest{Pod: own(tc.class)})
			require.Error(t, err)
			assert.Equal(t, tc.want, res.Actions[0].Message)
			assert.Empty(t, f.sandboxes())
		})
	}
}

func TestContainersGetTheGroupsOfVolumes(t *testing.T) { // vol-68, se-6
	f := newFake()
	f.has("img:1")
	rt, _ := f.engine(t, cri.Config{Providers: cri.Providers{Volumes: volumeGroups{7}}})
	syncs(t, rt, podOf(container("a")))
	assert.Equal(t, []int64{7}, f.newest("a").Config.Linux.SecurityContext.SupplementalGroups)
	assert.Equal(t, []int64{7}, f.sandboxes()[0].Config.Linux.SecurityContext.SupplementalGroups)
}

// volumeGroups implements cri.Volumes.
type volumeGroups []int64

func (g volumeGroups) Groups(*v1.Pod) []int64 { return g }

func (volumeGroups) SubPath(context.Context, runtime.SubPath) (string, error) {
	return "", errors.ErrUnsupported
}
